"""Tests that no runner finds: in classes that are no test classes, nested, or written over further down."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from twinlens.skips.classes import TestClass
from twinlens.skips.facts import Deleted, Function
from twinlens.skips.lints.finding import Finding, at_member

_CODE = "test-never-collected"


def uncollected_tests(cls: TestClass, reached: AbstractSet[str], called: AbstractSet[str]) -> Iterator[Finding]:
    """`test-never-collected` in one class; `reached` are the keys of the collected classes and of their bases."""
    path, name = cls.module.path, cls.facts.name
    deleted = {member.name for member in cls.facts.members if isinstance(member, Deleted)}
    for lost in cls.facts.lost:
        what = "deleted" if lost.name in deleted else "bound again"
        yield at_member(_CODE, path, lost, f"{lost.name} is {what} further down in {name}, so this one never runs")
    for nested in cls.facts.nested:
        yield at_member(
            _CODE, path, nested, f"{nested.name} is nested inside a member of {name}; no runner looks there"
        )
    if cls.key in reached:
        return
    for member in cls.facts.members:
        if isinstance(member, Function) and member.name.startswith("test") and member.name not in called:
            why = "is no TestCase" if not cls.is_test_case else "is not collected"
            message = f"{name} {why} and no collected class inherits from it, so {member.name} never runs"
            yield at_member(_CODE, path, member, message)
