"""Decides each test of each class: decorators of class and method, set-up, then the body under the class's flags.

Whatever never runs beats whatever may run; among what may run, the first thing that a runner meets decides. Hundreds of
classes share one inherited method: what a decision asks of the class is remembered, and a class that answers alike gets
the same decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from twinlens.skips.answers import Answers, AnswerTable, Reader
from twinlens.skips.assigned import assigned_test, marks_in
from twinlens.skips.classes import Binding, Classes, TestClass, variants_of
from twinlens.skips.facts import Decorator, Function, Value
from twinlens.skips.modules import Module
from twinlens.skips.states import MAY_RUN, Outcome, State, combined
from twinlens.skips.walk import Decision, Walk

_SET_UPS = ("setUpClass", "setUp", "asyncSetUp")
_STATE_OF_EFFECT = {"skip": State.SKIPPED, "conditional": State.CONDITIONAL, "gate": State.GATED}


@dataclass(slots=True)
class _Asked:
    """A node of the memory of one method: the question that comes next, and where each answer leads."""

    of: AnswerTable
    leads_to: dict[Any, _Asked | Decision] = field(default_factory=dict)


class Judge:
    """The outcome of any test of any class, each worked out once."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._answers = Answers(classes.modules, self._set_up)
        self._memory: dict[Binding, _Asked | Decision] = {}
        self._of_class: dict[TestClass, Outcome | None] = {}
        self._of_set_up: dict[TestClass, Outcome | None] = {}

    def outcomes(self, cls: TestClass, tests: Iterable[str]) -> dict[str, Outcome]:
        """What becomes of those of the tests that a class has."""
        above = self._class_level(cls)
        bindings, expanded = cls.bindings, cls.expanded
        found: dict[str, Outcome] = {}
        for test in tests:
            binding = bindings.get(test)
            if binding is not None:
                decide = self._of_parameterised if test in expanded else self._of_binding
                found[test] = decide(cls, binding, above)
        return found

    def _of_parameterised(self, cls: TestClass, binding: Binding, above: Outcome | None) -> Outcome:
        variants = variants_of(cls, binding.name)
        if not variants:
            return self._of_binding(cls, binding, above)
        own = self._of_binding(cls, binding, above) if binding.runnable else None
        told = ((name, self._of_binding(cls, variant, above)) for name, variant in variants.items())
        return combined(own, tuple(told))

    def _of_binding(self, cls: TestClass, binding: Binding, above: Outcome | None) -> Outcome:
        if not binding.runnable and binding.kind != "expanded":
            return _shadowed(binding)
        decision = self._remembered(cls, binding)
        outcome = decision if type(decision) is Outcome else self._settled(cls, decision)
        if above is None or (above.state in MAY_RUN and outcome.state not in MAY_RUN):
            return outcome
        return above

    def _settled(self, cls: TestClass, decision: Decision) -> Outcome:
        if isinstance(decision, Outcome):
            return decision
        said, path, line = self._answers.told(cls, decision.attribute)
        adds = decision.message and decision.attribute not in decision.message
        reason = f"{said} ({decision.message})" if adds else said
        return Outcome(decision.state, reason, path if line else decision.path, line or decision.line)

    def _remembered(self, cls: TestClass, binding: Binding) -> Decision:
        node = self._memory.get(binding)
        while isinstance(node, _Asked):
            node = node.leads_to.get(node.of[cls])
        if node is not None:
            return node
        reader = Reader(self._answers, cls)
        decision = self._decide(reader, binding)
        self._remember(binding, reader, decision)
        return decision

    def _remember(self, binding: Binding, reader: Reader, decision: Decision) -> None:
        trail = list(reader.trail.items())
        if not trail:
            self._memory[binding] = decision
            return
        node = self._memory.get(binding)
        if not isinstance(node, _Asked):
            node = self._memory[binding] = _Asked(self._answers.to(trail[0][0]))
        for (_, answer), (question, _) in pairwise(trail):
            inner = node.leads_to.get(answer)
            if not isinstance(inner, _Asked):
                inner = node.leads_to[answer] = _Asked(self._answers.to(question))
            node = inner
        node.leads_to[trail[-1][1]] = decision

    def _decide(self, reader: Reader, binding: Binding) -> Decision:
        if isinstance(binding.member, Value):
            return self._decide_assigned(reader, binding, binding.member)
        module, made = binding.owner.module, binding.expansion
        if binding.kind == "expanded" and made is not None:
            return _phantom_above(made.misplaced[0], made.expand, module)
        decorators = binding.member.decorators
        if made is not None:
            decorators = decorators[decorators.index(made.expand) + 1 :]
        lost = next((item for item in decorators if self._classes.effects.of(item, module).kind == "lost"), None)
        if lost is not None:
            return _phantom_uncalled(lost, module)
        told = list(self._effects_of(decorators, module))
        return self._first(told, reader, binding)

    def _first(self, told: list[Outcome], reader: Reader, binding: Binding) -> Decision:
        hard = next((outcome for outcome in told if outcome.state not in MAY_RUN), None)
        if hard is not None:
            return hard
        before = reader.set_up()
        if before is not None and before.state not in MAY_RUN:
            return before
        ending = Walk(self._classes, reader).of(binding)
        if ending.state not in MAY_RUN:
            return ending
        return next(filter(None, (*told, before)), ending)

    def _decide_assigned(self, reader: Reader, binding: Binding, value: Value) -> Decision:
        """`test_x = Base.test_x`, or a test that is wrapped where it is assigned."""
        module = binding.owner.module
        decorators, source = assigned_test(value)
        told = list(self._effects_of(decorators, module))
        hard = next((outcome for outcome in told if outcome.state not in MAY_RUN), None)
        if hard is not None:
            return hard
        owner, _, name = source.rpartition(".")
        home = self._classes.named(module, owner) if owner else binding.owner
        target = home.bindings.get(name) if home is not None else None
        if target is None or target is binding:
            return told[0] if told else Outcome(State.RUNS, "", module.path, value.line)
        ending = self._decide(reader, target)
        return told[0] if told and ending.state in MAY_RUN else ending

    def _class_level(self, cls: TestClass) -> Outcome | None:
        if cls not in self._of_class:
            self._of_class[cls] = _hardest(self._class_decorators(cls))
        return self._of_class[cls]

    def _class_decorators(self, cls: TestClass) -> Iterator[Outcome]:
        """Skips and marks on the class, on what it inherits from, and on its file."""
        for ancestor in cls.mro:
            binding = ancestor.own.get("pytestmark")
            marks = marks_in(binding.member) if binding is not None and isinstance(binding.member, Value) else []
            yield from self._effects_of([*ancestor.facts.decorators, *marks], ancestor.module)
        marked = cls.module.values.get("pytestmark")
        yield from self._effects_of(marks_in(marked) if marked is not None else [], cls.module)

    def _set_up(self, cls: TestClass) -> Outcome | None:
        if cls not in self._of_set_up:
            self._of_set_up[cls] = None
            self._of_set_up[cls] = _hardest(self._set_up_outcomes(cls))
        return self._of_set_up[cls]

    def _set_up_outcomes(self, cls: TestClass) -> Iterator[Outcome]:
        for name in _SET_UPS:
            binding = cls.bindings.get(name)
            if binding is not None and isinstance(binding.member, Function):
                ending = self._settled(cls, Walk(self._classes, Reader(self._answers, cls)).of(binding))
                if ending.state in (State.SKIPPED, State.DISABLED, State.CONDITIONAL):
                    yield ending

    def _effects_of(self, decorators: Iterable[Decorator], module: Module) -> Iterator[Outcome]:
        for decorator in decorators:
            effect = self._classes.effects.of(decorator, module)
            state = _STATE_OF_EFFECT.get(effect.kind)
            if state is not None:
                yield Outcome(state, effect.reason, module.path, effect.line, effect.condition)


def _hardest(told: Iterable[Outcome]) -> Outcome | None:
    outcomes = list(told)
    hard = [outcome for outcome in outcomes if outcome.state not in MAY_RUN]
    return next(iter(hard or outcomes), None)


def _shadowed(binding: Binding) -> Outcome:
    member = binding.member
    what = member.expression if isinstance(member, Value) else "a property"
    return Outcome(State.SHADOWED, f"{binding.name} = {what}", binding.owner.module.path, member.line)


def _phantom_above(culprit: Decorator, expand: Decorator, module: Module) -> Outcome:
    reason = f"@{culprit.name} stands above @{expand.name}: it decorates None, and what is collected tests nothing"
    return Outcome(State.PHANTOM, reason, module.path, culprit.line)


def _phantom_uncalled(lost: Decorator, module: Module) -> Outcome:
    reason = f"@{lost.name} is not called: it puts a decorator in the test's place, and what is collected tests nothing"
    return Outcome(State.PHANTOM, reason, module.path, lost.line)
