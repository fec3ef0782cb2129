"""The tests that `parameterized.expand` makes of one method, by the names that it gives them.

Names follow `parameterized` 0.9: the method's name, the padded index, and the first parameter where it is a string.
After the decorator has run, the method's own name holds `None`, so a decorator that stands above it decorates `None`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinlens.skips.effects import Effects
from twinlens.skips.facts import Decorator, Function
from twinlens.skips.modules import Module, Modules, ModuleScope
from twinlens.skips.values import UNKNOWN, evaluate

_UNSAFE = re.compile(r"[^a-zA-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class Expansion:
    """What one expanded method becomes: the names of its variants, and the decorators on the wrong side."""

    names: tuple[str, ...]
    expand: Decorator
    misplaced: tuple[Decorator, ...]
    """Decorators above `parameterized.expand`: they are applied to `None`."""
    phantom: bool
    """The own name is collected all the same, because a misplaced decorator made something callable of `None`."""


def expansion(function: Function, module: Module, modules: Modules, effects: Effects) -> Expansion | None:
    """The expansion of a method that stands in a module, `None` where it is not parameterised."""
    for index, decorator in enumerate(function.decorators):
        if decorator.arguments is not None and effects.of(decorator, module).kind == "expand":
            above = function.decorators[:index]
            return Expansion(
                names=_names(function.name, decorator, ModuleScope(modules, module)),
                expand=decorator,
                misplaced=above,
                phantom=any(effects.of(other, module).kind != "gate" for other in above),
            )
    return None


def _names(base: str, decorator: Decorator, scope: ModuleScope) -> tuple[str, ...]:
    keywords = dict(decorator.keywords)
    given = decorator.arguments or (keywords.get("input", ""),)
    parameters = evaluate(given[0], scope)
    if not isinstance(parameters, list | tuple) or not parameters or "name_func" in keywords:
        return ()
    digits = len(str(len(parameters) - 1))
    return tuple(f"{base}_{index:0>{digits}}{_suffix(parameter)}" for index, parameter in enumerate(parameters))


def _suffix(parameter: object) -> str:
    first = parameter[0] if isinstance(parameter, tuple | list) and parameter else parameter
    if not isinstance(first, str) or first is UNKNOWN:
        return ""
    return "_" + _UNSAFE.sub("_", first)
