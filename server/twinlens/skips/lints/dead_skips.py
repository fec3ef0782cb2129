"""Skips with nothing behind them: of tests that are not inherited, and of variants that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from twinlens.skips.classes import Binding, Classes, TestClass, variants_of
from twinlens.skips.facts import Call, Function, Skip
from twinlens.skips.lints.finding import Finding, at_member, removal

_VARIANT = re.compile(r"^(test_\w+?)_\d+(?:_\w+)?$")


def dead_skips(cls: TestClass, classes: Classes) -> Iterator[Finding]:
    """`skip-overrides-nothing` and `stale-variant` in one collected class that inherits common tests."""
    if cls.has_unseen_base:
        return
    for name, binding in cls.own.items():
        member = binding.member
        if binding.owner is not cls or not name.startswith("test") or not isinstance(member, Function):
            continue
        if binding.kind != "function" or not _only_skips(member, cls, classes):
            continue
        below = cls.after(cls, name)
        if below is None:
            yield _of_variant(cls, member) or _of_nothing(cls, member)
        elif below.kind == "expanded" and name in _expanded_below(cls, below):
            yield _beside_variants(cls, member)


def _expanded_below(cls: TestClass, below: Binding) -> set[str]:
    return {below.name} if variants_of(cls, below.name) else set()


def _only_skips(function: Function, cls: TestClass, classes: Classes) -> bool:
    decorated = any(classes.effects.of(item, cls.module).kind == "skip" for item in function.decorators)
    hollow = function.hollow or all(isinstance(step, Skip | Call) for step in function.steps)
    return (decorated and hollow) or any(isinstance(step, Skip) for step in function.steps[:1])


def _of_nothing(cls: TestClass, function: Function) -> Finding:
    inherited = [name for name in cls.bindings if name.startswith("test_") and name != function.name]
    near = get_close_matches(function.name, inherited, n=1, cutoff=0.8)
    hint = f"; is {near[0]} meant?" if near else ""
    message = f"{cls.facts.name} inherits no {function.name}, so this skips nothing{hint}"
    fix = removal(f"Remove the skip of {function.name}", cls.facts, function)
    return at_member("skip-overrides-nothing", cls.module.path, function, message, fix)


def _beside_variants(cls: TestClass, function: Function) -> Finding:
    count = len(variants_of(cls, function.name))
    message = (
        f"{function.name} is parameterised: this adds one skipped test, and its {count} variants still run; "
        "repeat the parameterized.expand above the skip"
    )
    return at_member("skip-overrides-nothing", cls.module.path, function, message)


def _of_variant(cls: TestClass, function: Function) -> Finding | None:
    test = _parameterised_test(cls, function.name)
    if test is None:
        return None
    near = get_close_matches(function.name, list(variants_of(cls, test)), n=1, cutoff=0.5)
    hint = f"; is {near[0]} meant?" if near else ""
    message = f"{test} has no variant {function.name}, so this skips nothing{hint}"
    fix = removal(f"Remove the skip of {function.name}", cls.facts, function)
    return at_member("stale-variant", cls.module.path, function, message, fix)


def _parameterised_test(cls: TestClass, name: str) -> str | None:
    if not _VARIANT.match(name):
        return None
    bases = [
        test for test, binding in cls.bindings.items() if binding.kind == "expanded" and name.startswith(f"{test}_")
    ]
    return max(bases, key=len, default=None)
