"""Assignments in test classes: flags that nothing reads, and values that hide a test."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.skips.classes import TestClass
from twinlens.skips.facts import Value
from twinlens.skips.lints.finding import Finding, at_member, removal
from twinlens.skips.modules import Found, Module, Modules

_READ_BY_RUNNERS = frozenset({"maxDiff", "longMessage", "pytestmark"})


def dead_flags(cls: TestClass, modules: Modules) -> Iterator[Finding]:
    """`flag-nobody-reads` in one collected class that inherits common tests."""
    if cls.has_unseen_base:
        return
    read = _reads(cls, modules)
    for name, binding in cls.own.items():
        member = binding.member
        if binding.owner is not cls or not isinstance(member, Value) or member.expression not in ("True", "False"):
            continue
        if name.startswith("__") or name in _READ_BY_RUNNERS or name in read or _hides_a_test(cls, name):
            continue
        message = f"no test of {cls.facts.name} reads {name}"
        yield at_member(
            "flag-nobody-reads", cls.module.path, member, message, removal(f"Remove {name}", cls.facts, member)
        )


def shadowed_tests(cls: TestClass) -> Iterator[Finding]:
    """`shadowed-test` in one class."""
    for name, binding in cls.own.items():
        member = binding.member
        if binding.owner is cls and isinstance(member, Value) and not binding.runnable and _hides_a_test(cls, name):
            message = f"{name} = {member.expression} hides the inherited test: it is not skipped, it is gone"
            yield at_member("shadowed-test", cls.module.path, member, message)


def _hides_a_test(cls: TestClass, name: str) -> bool:
    below = cls.after(cls, name) if name.startswith("test") else None
    return below is not None and (below.runnable or below.kind == "expanded")


def _reads(cls: TestClass, modules: Modules) -> set[str]:
    """What is read of a test case in any file that the class is made of, or that such a file imports."""
    homes = {ancestor.module.path: ancestor.module for ancestor in cls.mro}
    read: set[str] = set()
    for module in homes.values():
        read |= module.file.reads
        for name in module.imports:
            home = _home(modules, module, name)
            if home is not None:
                read |= home.file.reads
    return read


def _home(modules: Modules, module: Module, name: str) -> Module | None:
    found = modules.find(module, name)
    return found.module if isinstance(found, Found) and found.module.path.startswith("tests/") else None
