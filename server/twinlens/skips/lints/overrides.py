"""Overrides that take a test away: without doing anything, without a reason, or alone among all models."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.skips.classes import Classes, TestClass
from twinlens.skips.facts import Function, Skip
from twinlens.skips.lints.finding import Finding, at_member
from twinlens.skips.results import ModelClass, Scan
from twinlens.skips.states import State

_OTHERS_PER_SKIP = 5
"""A skip is not rare where more than one model in so many makes it, as few as they may be."""
_TAKEN_AWAY = frozenset({State.SKIPPED, State.SHADOWED, State.EMPTY})


class Popularity:
    """For each test, how many models inherit it, and which of them run it in no class; worked out when it is asked."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._known: dict[str, tuple[int, frozenset[str]]] = {}

    def of(self, test: str) -> tuple[int, frozenset[str]]:
        """The number of models that inherit a test, and the models that don't run it."""
        if test not in self._known:
            models = self._scan.of_test(test)
            skipping = frozenset(
                model for model, classes in models.items() if not any(cls.outcomes[test].runs for cls in classes)
            )
            self._known[test] = (len(models), skipping)
        return self._known[test]


def empty_overrides(cls: TestClass, classes: Classes) -> Iterator[Finding]:
    """`empty-override` in one class."""
    for function in _tests(cls):
        kinds = {classes.effects.of(decorator, cls.module).kind for decorator in function.decorators}
        if function.hollow and not kinds & {"skip", "conditional"} and cls.after(cls, function.name) is not None:
            message = f"{function.name} overrides the inherited test and does nothing: it passes without a test"
            yield at_member("empty-override", cls.module.path, function, message)


def skips_without_reason(cls: TestClass, classes: Classes) -> Iterator[Finding]:
    """`skip-without-reason` in one class: by decorator, or by what the body does first."""
    for function in _tests(cls):
        effects = [classes.effects.of(decorator, cls.module) for decorator in function.decorators]
        decorated = any(effect.kind in ("skip", "conditional") and not effect.reason.strip() for effect in effects)
        first = function.steps[0] if function.steps else None
        if decorated or (isinstance(first, Skip) and first.reason in ("", "''")):
            yield at_member(
                "skip-without-reason", cls.module.path, function, f"{function.name} is skipped without a reason"
            )


def rare_skips(cls: TestClass, answers: ModelClass, popularity: Popularity, most: int) -> Iterator[Finding]:
    """`rare-skip` in one class: what it takes away, and only `most` models or fewer do, itself among them."""
    for name, binding in cls.own.items():
        outcome = answers.outcomes.get(name)
        if binding.owner is not cls or outcome is None or outcome.state not in _TAKEN_AWAY or outcome.runs:
            continue
        inheriting, skipping = popularity.of(name)
        if answers.model not in skipping or len(skipping) > min(most, inheriting // _OTHERS_PER_SKIP):
            continue
        others = len(skipping) - 1
        who = f"this is one of {others + 1} that do not" if others else "this is the only one that does not"
        message = f"{inheriting - others - 1} of {inheriting} models run {name}; {who}"
        yield at_member("rare-skip", cls.module.path, binding.member, message)


def _tests(cls: TestClass) -> Iterator[Function]:
    return (item for item in cls.facts.members if isinstance(item, Function) and item.name.startswith("test"))
