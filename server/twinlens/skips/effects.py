"""What a decorator does to a test: skip it, perhaps skip it, gate it by the machine, multiply it, or lose it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from twinlens.skips.facts import Decorator, Function
from twinlens.skips.modules import External, Found, Module, Modules, ModuleScope
from twinlens.skips.values import UNKNOWN, evaluate, truth
from twinlens.skips.wording import render

EffectKind = Literal["skip", "conditional", "gate", "expand", "mark", "lost", "other"]

_GATE = re.compile(r"^(?:require_\w+|slow|tooslow|nightly|is_staging_test|\w*_?skip_if_\w+)$")
_ALWAYS_MET = frozenset({"require_torch"})
"""Every common test of a modeling file needs torch: as a gate it would say nothing."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One decorator's effect, with its reason, its condition as text where it has one, and its line."""

    kind: EffectKind
    reason: str = ""
    condition: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class _FunctionScope:
    """Names inside a function that decorates: its parameters by their defaults, then its module's names."""

    modules: Modules
    module: Module
    parameters: Mapping[str, str]
    receiver: str = field(default="", init=False)

    def name(self, name: str) -> Any:
        if name in self.parameters:
            return evaluate(self.parameters[name], ModuleScope(self.modules, self.module))
        return self.modules.value(self.module, name)

    def attribute(self, name: str) -> Any:  # noqa: ARG002 - a function has no test case to ask
        return UNKNOWN


class Effects:
    """The effects of decorators, each worked out once for each module it stands in."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._known: dict[tuple[str, Decorator], Effect] = {}

    def of(self, decorator: Decorator, module: Module) -> Effect:
        """What a decorator that stands in a module does."""
        key = (module.path, decorator)
        if key not in self._known:
            self._known[key] = self._work_out(decorator, module)
        return self._known[key]

    def _work_out(self, decorator: Decorator, module: Module) -> Effect:
        found = self._modules.find(module, decorator.name)
        if isinstance(found, Found) and isinstance(found.definition, Function):
            return self._of_own_function(decorator, found.module, found.definition)
        name = found.name if isinstance(found, External) else decorator.name
        return self._of_library(decorator, module, name)

    def _of_own_function(self, decorator: Decorator, home: Module, function: Function) -> Effect:
        if function.name in _ALWAYS_MET:
            return Effect("other", line=decorator.line)
        if function.makes_decorator and decorator.arguments is None:
            return Effect("lost", line=decorator.line)
        scope = _FunctionScope(self._modules, home, dict(function.defaults) | dict(decorator.keywords))
        for gate in function.gates:
            if _stands_open(gate, scope):
                return Effect("other", line=decorator.line)
            reason = _argument(gate, 0 if gate.name.rpartition(".")[2] == "skip" else 1, "reason")
            told = render(reason, scope) if reason else f"@{decorator.name}"
            return Effect("gate", told, decorator.name, decorator.line)
        return self._of_name(decorator, function.name)

    def _of_library(self, decorator: Decorator, module: Module, name: str) -> Effect:
        scope = ModuleScope(self._modules, module)
        package, _, last = name.rpartition(".")
        if last == "expand" and "parameterized" in package:
            return Effect("expand", line=decorator.line)
        if package in ("unittest", "unittest.case") and last in ("skip", "skipIf", "skipUnless"):
            if last == "skip":
                return Effect("skip", self._reason(decorator, 0, scope), line=decorator.line)
            return self._of_condition(decorator, _argument(decorator, 0), last == "skipIf", scope)
        if package in ("pytest.mark", "pytest"):
            return self._of_mark(decorator, last, scope)
        return self._of_name(decorator, last)

    def _of_mark(self, decorator: Decorator, mark: str, scope: ModuleScope) -> Effect:
        if mark == "skip":
            return Effect("skip", self._reason(decorator, 0, scope), line=decorator.line)
        if mark == "skipif" and _argument(decorator, 0):
            return self._of_condition(decorator, _argument(decorator, 0), True, scope)
        if mark == "xfail" and dict(decorator.keywords).get("run") == "False":
            return Effect("skip", self._reason(decorator, 1, scope), line=decorator.line)
        return Effect("mark", line=decorator.line)

    def _of_condition(self, decorator: Decorator, condition: str, skips_when: bool, scope: ModuleScope) -> Effect:
        known = truth(condition, scope)
        reason = self._reason(decorator, 1, scope)
        if known is None:
            return Effect("conditional", reason, condition if skips_when else f"not ({condition})", decorator.line)
        return Effect("skip" if known is skips_when else "other", reason, line=decorator.line)

    def _of_name(self, decorator: Decorator, name: str) -> Effect:
        if _GATE.match(name) and name not in _ALWAYS_MET:
            return Effect("gate", f"@{decorator.name}", decorator.name, decorator.line)
        return Effect("other", line=decorator.line)

    def _reason(self, decorator: Decorator, position: int, scope: ModuleScope) -> str:
        text = _argument(decorator, position, "reason")
        return render(text, scope) if text else ""


def _stands_open(gate: Decorator, scope: _FunctionScope) -> bool:
    """A gate on a switch that is on by default. Whether a package is there is another matter: that is never assumed."""
    kind, condition = gate.name.rpartition(".")[2], _argument(gate, 0)
    return kind == "skipUnless" and condition.isidentifier() and truth(condition, scope) is True


def _argument(decorator: Decorator, position: int, keyword: str = "") -> str:
    named = dict(decorator.keywords).get(keyword, "")
    if named:
        return named
    arguments = decorator.arguments or ()
    return arguments[position] if position < len(arguments) else ""
