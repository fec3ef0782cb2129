"""Decorators that miss the test: above `parameterized.expand`, or used without the call that they need."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.skips.classes import Classes, TestClass
from twinlens.skips.facts import Function
from twinlens.skips.lints.finding import Finding, Fix, at_decorator


def misplaced_decorators(cls: TestClass) -> Iterator[Finding]:
    """`marker-order` in one class."""
    for binding in cls.own.values():
        made, function = binding.expansion, binding.member
        if binding.owner is not cls or binding.kind != "expanded" or made is None or not isinstance(function, Function):
            continue
        if not made.misplaced:
            continue
        first, last = made.misplaced[0], made.misplaced[-1]
        names = ", ".join(f"@{decorator.name}" for decorator in made.misplaced)
        effect = "and is collected as a test that tests nothing" if made.phantom else "and the variants go without"
        message = f"{names} above @{made.expand.name} decorates None {effect}"
        fix = Fix(
            f"Move {names} below @{made.expand.name}", "move below", first.line, last.end_line, made.expand.end_line
        )
        yield at_decorator("marker-order", cls.module.path, function, first, message, fix)


def uncalled_decorators(cls: TestClass, classes: Classes) -> Iterator[Finding]:
    """`decorator-not-called` in one class."""
    for function in cls.facts.members:
        if not isinstance(function, Function):
            continue
        for decorator in function.decorators:
            if classes.effects.of(decorator, cls.module).kind == "lost":
                message = f"@{decorator.name} is not called: it puts a decorator in the place of {function.name}"
                fix = Fix(f"Write @{decorator.name}()", "append", decorator.line, decorator.end_line, text="()")
                yield at_decorator("decorator-not-called", cls.module.path, function, decorator, message, fix)
