"""What a test class answers when a decision about one of its tests asks: values, methods, what `super()` finds.

Answers are comparable, so that a decision made for one class holds for every class that answers alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from twinlens.skips.classes import Binding, TestClass
from twinlens.skips.facts import Branch, Call, Function, Loop, Skip, Step, Value
from twinlens.skips.modules import Module, Modules, ModuleScope
from twinlens.skips.states import Outcome
from twinlens.skips.values import MISSING, UNKNOWN, evaluate
from twinlens.skips.wording import deciding_attribute


@dataclass(frozen=True, slots=True)
class ValueOf:
    """Asks for the value of a class attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class BoundTo:
    """Asks what is bound to a name: which statement of which class."""

    name: str


@dataclass(frozen=True, slots=True)
class HelperThatMatters:
    """Asks for a method that a test calls, if more depends on it than that it works.

    Of a method that only `prepares`, nothing but its skips matters.
    """

    name: str
    prepares: bool


@dataclass(frozen=True, slots=True)
class NextAfter:
    """Asks what `super()` finds under a name, from a method that `owner` defines."""

    owner: TestClass
    name: str


@dataclass(frozen=True, slots=True)
class SetUp:
    """Asks what becomes of every test of the class before its own code begins."""


Question = ValueOf | BoundTo | HelperThatMatters | NextAfter | SetUp


class AnswerTable(dict[TestClass, Any]):
    """By class: a value, or a `Binding`, or `None` where nothing is bound. What is missing is worked out."""

    def __init__(self, answer: Callable[[TestClass], Any]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, cls: TestClass) -> Any:
        found = self[cls] = self._answer(cls)
        return found


class Answers:
    """The answers of every class, attribute values worked out once for each class."""

    def __init__(self, modules: Modules, set_up: Callable[[TestClass], Outcome | None]) -> None:
        self._modules = modules
        self._set_up = set_up
        self._tables: dict[Question, AnswerTable] = {}
        self._values: dict[tuple[TestClass, str], Hashable] = {}
        self._helpers: dict[tuple[TestClass, Binding, bool], bool] = {}
        self._told: dict[tuple[TestClass, str], tuple[str, str, int]] = {}

    def to(self, question: Question) -> AnswerTable:
        """The answers of all classes to one question, each worked out when it is looked up."""
        table = self._tables.get(question)
        if table is None:
            table = self._tables[question] = AnswerTable(lambda cls: self._answer(question, cls))
        return table

    def _answer(self, question: Question, cls: TestClass) -> Any:
        match question:
            case ValueOf(name=name):
                return self.value(cls, name)
            case BoundTo(name=name):
                return cls.bindings.get(name)
            case HelperThatMatters(name=name, prepares=prepares):
                return self._helper(cls, name, prepares)
            case SetUp():
                return self._set_up(cls)
            case NextAfter(owner=owner, name=name):
                return cls.after(owner, name)

    def value(self, cls: TestClass, name: str) -> Hashable:
        """The value of a class attribute: `UNKNOWN` where only a run can tell, `MISSING` where there is none."""
        key = (cls, name)
        if key not in self._values:
            self._values[key] = UNKNOWN
            self._values[key] = _comparable(self._work_out(cls, name))
        return self._values[key]

    def _work_out(self, cls: TestClass, name: str) -> Any:
        binding = cls.bindings.get(name)
        if name in cls.set_on_instance:
            return UNKNOWN
        if binding is None:
            return UNKNOWN if cls.has_unseen_base else MISSING
        member = binding.member
        if isinstance(member, Value):
            return evaluate(member.expression, _BodyScope(self._modules, binding.owner))
        if member.role == "property" and member.returns:
            return evaluate(member.returns, ClassScope(self, cls, binding.owner.module, member.receiver))
        return UNKNOWN

    def _helper(self, cls: TestClass, name: str, prepares: bool) -> Binding | None:
        binding = cls.bindings.get(name)
        if binding is None or not isinstance(binding.member, Function) or binding.member.role == "property":
            return None
        key = (cls, binding, prepares)
        if key not in self._helpers:
            self._helpers[key] = self._matters(cls, binding, prepares, ())
        return binding if self._helpers[key] else None

    def _matters(self, cls: TestClass, binding: Binding | None, prepares: bool, above: tuple[Binding, ...]) -> bool:
        if binding is None or binding in above or not isinstance(binding.member, Function):
            return False
        if binding.member.hollow or binding.member.decorators:
            return not prepares or bool(binding.member.decorators)
        inner = (*above, binding)
        return any(self._step_matters(cls, step, prepares, inner) for step in binding.member.steps)

    def _step_matters(self, cls: TestClass, step: Step, prepares: bool, above: tuple[Binding, ...]) -> bool:
        match step:
            case Skip():
                return True
            case Branch(body=body, orelse=orelse):
                inner = (*body, *orelse)
                return not prepares or any(self._step_matters(cls, nested, prepares, above) for nested in inner)
            case Loop(body=body):
                return not prepares or any(self._step_matters(cls, nested, prepares, above) for nested in body)
            case Call(target="self", name=name):
                return self._matters(cls, cls.bindings.get(name), prepares or step.prepares, above)
            case Call(target="super", name=name):
                return self._matters(cls, cls.after(above[-1].owner, name), prepares or step.prepares, above)
            case Call():
                return True
        return False

    def told(self, cls: TestClass, attribute: str) -> tuple[str, str, int]:
        """What gives a class's attribute its value, in words, with the path and line; line 0 where nothing sets it."""
        key = (cls, attribute)
        if key not in self._told:
            self._told[key] = self._tell(cls, attribute)
        return self._told[key]

    def _tell(self, cls: TestClass, attribute: str) -> tuple[str, str, int]:
        binding = cls.bindings.get(attribute)
        if binding is None:
            return f"{attribute} is not set", "", 0
        member, home = binding.member, binding.owner.module
        if isinstance(member, Value):
            return f"{attribute} = {member.expression}", home.path, member.line
        behind = deciding_attribute(member.returns, ClassScope(self, cls, home, member.receiver))
        if behind and behind != attribute:
            return self._tell(cls, behind)
        return f"{attribute} is empty", home.path, member.line

    def module_value(self, module: Module, name: str) -> Any:
        """The value of a module's constant."""
        return self._modules.value(module, name)


@dataclass(frozen=True, slots=True)
class ClassScope:
    """Names as a method sees them: its module's names, and the attributes of the class whose test runs."""

    answers: Answers
    cls: TestClass
    module: Module
    receiver: str

    def name(self, name: str) -> Any:
        return self.answers.module_value(self.module, name)

    def attribute(self, name: str) -> Any:
        return self.answers.value(self.cls, name)


class Reader:
    """One class as a decision sees it; `trail` keeps each question with its answer, in the order asked."""

    def __init__(self, answers: Answers, cls: TestClass) -> None:
        self._answers = answers
        self._cls = cls
        self.trail: dict[Question, Any] = {}

    def value(self, name: str) -> Any:
        return self._ask(ValueOf(name))

    def bound_to(self, name: str) -> Binding | None:
        return self._ask(BoundTo(name))

    def helper(self, name: str, *, prepares: bool) -> Binding | None:
        return self._ask(HelperThatMatters(name, prepares))

    def set_up(self) -> Outcome | None:
        return self._ask(SetUp())

    def next_after(self, owner: TestClass, name: str) -> Binding | None:
        return self._ask(NextAfter(owner, name))

    def _ask(self, question: Question) -> Any:
        if question not in self.trail:
            self.trail[question] = self._answers.to(question)[self._cls]
        return self.trail[question]


@dataclass(frozen=True, slots=True)
class _BodyScope:
    """Names as an assignment in a class body sees them: the body's own first, then the module's."""

    modules: Modules
    owner: TestClass
    receiver: str = field(default="", init=False)

    def name(self, name: str) -> Any:
        binding = self.owner.own.get(name)
        if binding is not None and binding.owner is self.owner and isinstance(binding.member, Value):
            return evaluate(binding.member.expression, ModuleScope(self.modules, self.owner.module))
        return self.modules.value(self.owner.module, name)

    def attribute(self, name: str) -> Any:  # noqa: ARG002 - a class body has no test case to ask
        return UNKNOWN


def _comparable(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(_comparable(item) for item in value)
    return value if isinstance(value, Hashable) else UNKNOWN
