"""Walks what a test does, for one class: the guards that flags settle, the loops over nothing, what is left to test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from twinlens.skips.answers import Reader
from twinlens.skips.classes import Binding, Classes, TestClass
from twinlens.skips.facts import Branch, Call, Function, Loop, Skip, Step, Stop, Work
from twinlens.skips.modules import Found, Module, Modules
from twinlens.skips.states import Outcome, State
from twinlens.skips.values import UNKNOWN, evaluate, truth
from twinlens.skips.wording import deciding_attribute, render

_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class ByAttribute:
    """A decision that an attribute of the class made; which statement set it is looked up for each class."""

    state: State
    attribute: str
    message: str
    path: str
    line: int


Decision = Outcome | ByAttribute
Ending = Decision | Literal["leaves", "next turn"] | None
"""How a run of steps ends: in a skip, out of the function, out of this turn of a loop, or by falling through."""


@dataclass(slots=True)
class _Frame:
    """The function that is walked: where its names are looked up, and what it calls its test case."""

    module: Module
    owner: TestClass | None
    receiver: str
    depth: int
    prepares: bool = False


class Walk:
    """One decision about one method of one class. `reader` answers for the class and remembers what was asked."""

    def __init__(self, classes: Classes, reader: Reader) -> None:
        self._classes = classes
        self._reader = reader
        self._works = False
        self._prepares = False
        self._may_skip: Outcome | None = None
        self._nothing_to_do: ByAttribute | None = None
        self._open: list[Function] = []

    def of(self, binding: Binding) -> Decision:
        """What running the method comes to, its decorators left aside."""
        function = binding.member
        assert isinstance(function, Function)
        module = binding.owner.module
        if function.hollow:
            return Outcome(State.EMPTY, "the method does nothing", module.path, function.line)
        frame = _Frame(module, binding.owner, function.receiver, 0)
        ending = self._enter(function, frame)
        if isinstance(ending, Outcome | ByAttribute):
            return ending
        if self._works:
            return self._may_skip or Outcome(State.RUNS, "", module.path, function.line)
        if self._nothing_to_do is not None:
            return self._nothing_to_do
        if self._prepares or self._may_skip is not None:
            return self._may_skip or Outcome(State.RUNS, "", module.path, function.line)
        return Outcome(State.EMPTY, "the method does nothing", module.path, function.line)

    def _enter(self, function: Function, frame: _Frame) -> Ending:
        self._open.append(function)
        ending = self._steps(function.steps, frame)
        self._open.pop()
        return ending if isinstance(ending, Outcome | ByAttribute) else None

    def _steps(self, steps: tuple[Step, ...], frame: _Frame) -> Ending:
        for step in steps:
            ending = self._step(step, frame)
            if ending is not None:
                return ending
        return None

    def _step(self, step: Step, frame: _Frame) -> Ending:
        match step:
            case Skip():
                reason = render(step.reason, self._scope(frame)) if step.reason else ""
                return Outcome(State.SKIPPED, reason, frame.module.path, step.line)
            case Stop(kind="continue"):
                return "next turn"
            case Stop():
                return "leaves"
            case Work():
                self._count(prepares=step.prepares or frame.prepares)
            case Branch():
                return self._branch(step, frame)
            case Loop():
                return self._loop(step, frame)
            case Call():
                return self._call(step, frame)
        return None

    def _count(self, *, prepares: bool) -> None:
        if prepares:
            self._prepares = True
        else:
            self._works = True

    def _branch(self, step: Branch, frame: _Frame) -> Ending:
        scope = self._scope(frame)
        holds = truth(step.condition, scope)
        if holds is None:
            return self._open_branch(step, frame)
        taken, left = (step.body, step.orelse) if holds else (step.orelse, step.body)
        flag = deciding_attribute(step.condition, scope)
        ending = self._steps(taken, frame)
        if not flag:
            return ending
        if isinstance(ending, Outcome):
            return self._disabled(flag, ending, step, frame)
        if ending is not None or any(map(_tests, left)):
            self._note_nothing_to_do(self._disabled(flag, None, step, frame))
        return ending

    def _open_branch(self, step: Branch, frame: _Frame) -> Ending:
        worked = self._works
        endings = [self._steps(steps, frame) for steps in (step.body, step.orelse)]
        conditions = (step.condition, f"not ({step.condition})")
        body, orelse = endings
        if isinstance(body, Outcome | ByAttribute) and isinstance(orelse, Outcome | ByAttribute):
            return _either(body, orelse)
        for condition, ending, steps in zip(conditions, endings, (step.body, step.orelse), strict=True):
            if isinstance(ending, Outcome | ByAttribute):
                self._note_may_skip(condition, ending)
            elif ending == "leaves" and not worked and all(isinstance(inner, Stop) for inner in steps):
                where = Outcome(State.CONDITIONAL, "it returns before it tests anything", frame.module.path, step.line)
                self._note_may_skip(condition, where)
        if None in endings:
            return None
        return "next turn" if "next turn" in endings else "leaves"

    def _loop(self, step: Loop, frame: _Frame) -> Ending:
        scope = self._scope(frame)
        items = evaluate(step.iterable, scope) if step.iterable else UNKNOWN
        if isinstance(items, list | tuple) and not items:
            attribute = deciding_attribute(step.iterable, scope)
            if attribute:
                self._note_nothing_to_do(self._vacuous(attribute, step, frame))
            return None
        ending = self._steps(step.body, frame)
        return None if ending == "next turn" else ending

    def _call(self, step: Call, frame: _Frame) -> Ending:
        target, module, owner = self._called(step, frame)
        if target is None or frame.depth >= _DEEPEST or any(target is function for function in self._open):
            self._count(prepares=step.prepares or frame.prepares)
            return None
        effects = [self._classes.effects.of(decorator, module) for decorator in target.decorators]
        hard = next((effect for effect in effects if effect.kind == "skip"), None)
        if hard is not None and step.target != "function":
            return Outcome(State.SKIPPED, hard.reason, module.path, hard.line)
        for effect in effects:
            if effect.kind in ("conditional", "gate"):
                state = State.GATED if effect.kind == "gate" else State.CONDITIONAL
                gate = Outcome(state, effect.reason, module.path, effect.line, effect.condition)
                self._may_skip = self._may_skip or gate
        if target.hollow:
            return None
        inner = _Frame(module, owner, target.receiver, frame.depth + 1, frame.prepares or step.prepares)
        return self._enter(target, inner)

    def _called(self, step: Call, frame: _Frame) -> tuple[Function | None, Module, TestClass | None]:
        if step.target == "function":
            return self._called_function(step.name, frame)
        if step.target == "super":
            binding = self._reader.next_after(frame.owner, step.name) if frame.owner is not None else None
        else:
            binding = self._reader.helper(step.name, prepares=step.prepares or frame.prepares)
        if binding is not None and isinstance(binding.member, Function) and binding.member.role != "property":
            return binding.member, binding.owner.module, binding.owner
        return None, frame.module, None

    def _called_function(self, name: str, frame: _Frame) -> tuple[Function | None, Module, TestClass | None]:
        match self._classes.modules.find(frame.module, name):
            case Found(module=home, definition=Function() as function):
                return function, home, None
        owner, _, method = name.rpartition(".")
        cls = self._classes.named(frame.module, owner) if owner else None
        binding = cls.bindings.get(method) if cls is not None else None
        if binding is not None and isinstance(binding.member, Function):
            return binding.member, binding.owner.module, binding.owner
        return None, frame.module, None

    def _note_may_skip(self, condition: str, ending: Decision) -> None:
        if self._may_skip is None:
            reason = ending.reason if isinstance(ending, Outcome) else ending.message
            self._may_skip = Outcome(State.CONDITIONAL, reason, ending.path, ending.line, condition)

    def _note_nothing_to_do(self, outcome: ByAttribute) -> None:
        if self._nothing_to_do is None:
            self._nothing_to_do = outcome

    def _disabled(self, flag: str, skip: Outcome | None, step: Branch, frame: _Frame) -> ByAttribute:
        return ByAttribute(State.DISABLED, flag, skip.reason if skip is not None else "", frame.module.path, step.line)

    def _vacuous(self, attribute: str, step: Loop, frame: _Frame) -> ByAttribute:
        return ByAttribute(State.VACUOUS, attribute, "nothing to loop over", frame.module.path, step.line)

    def _scope(self, frame: _Frame) -> _WalkScope:
        return _WalkScope(self._classes.modules, self._reader, frame.module, frame.receiver)


@dataclass(frozen=True, slots=True)
class _WalkScope:
    """Names as the walked function sees them; what it reads of its class is asked of the reader."""

    modules: Modules
    reader: Reader
    module: Module
    receiver: str

    def name(self, name: str) -> Any:
        return self.modules.value(self.module, name)

    def attribute(self, name: str) -> Any:
        return self.reader.value(name)


def _either(one: Decision, other: Decision) -> Decision:
    """A skip whichever way a condition turns out: at the first place, with both reasons."""
    if not isinstance(one, Outcome) or not isinstance(other, Outcome) or one.reason == other.reason:
        return one
    return replace(one, reason=f"{one.reason}; or: {other.reason}")


def _tests(step: Step) -> bool:
    match step:
        case Work(prepares=prepares):
            return not prepares
        case Branch(body=body, orelse=orelse):
            return any(map(_tests, (*body, *orelse)))
        case Call() | Loop():
            return True
    return False
