"""The answer for one test over all models, and the JSON of a scan: upstream's keys, filled with the truth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from twinlens.skips.collector import collector_paused
from twinlens.skips.results import CommonTest, ModelClass, Scan
from twinlens.skips.states import Outcome

AnswerState = Literal[
    "runs", "conditional", "gated", "skipped", "disabled", "shadowed", "empty", "vacuous", "phantom", "mixed"
]
"""A state's value, or `mixed` where only some of a model's classes run the test."""
MIXED: Final = "mixed"


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One model's answer for one test."""

    model: str
    state: AnswerState
    runs: bool
    classes: tuple[tuple[ModelClass, Outcome], ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the classes that don't run the test, each once."""
        return tuple(dict.fromkeys(outcome.reason for _, outcome in self.classes if not outcome.runs))


@dataclass(frozen=True, slots=True)
class TestAnswer:
    """One test over all models whose class inherits it. A model skips it when none of its classes runs it."""

    test: CommonTest
    models: tuple[ModelAnswer, ...]
    not_applicable: tuple[str, ...]

    __test__ = False

    @property
    def skipped(self) -> tuple[ModelAnswer, ...]:
        """The models that don't run the test in any class."""
        return tuple(answer for answer in self.models if not answer.runs)

    @property
    def mixed(self) -> tuple[ModelAnswer, ...]:
        """The models that run the test in some classes only."""
        return tuple(answer for answer in self.models if answer.state == MIXED)

    @property
    def proportion(self) -> float:
        """The share of the inheriting models that skip the test, 0 where none inherits it."""
        return len(self.skipped) / len(self.models) if self.models else 0.0


def answer_for(scan: Scan, test: CommonTest) -> TestAnswer:
    """What a scan says of one common test."""
    by_model = scan.of_test(test.name)
    answers = tuple(_model_answer(model, test.name, by_model[model]) for model in sorted(by_model))
    return TestAnswer(test, answers, tuple(model for model in scan.models if model not in by_model))


def all_answers(scan: Scan) -> Iterator[TestAnswer]:
    """What a scan says of each common test, in the order of the common files."""
    return (answer_for(scan, test) for test in scan.tests.values())


def as_json(answer: TestAnswer) -> dict[str, Any]:
    """One test's entry: upstream's keys first, ours after them."""
    states = {cls.key: _state(outcome) for found in answer.models for cls, outcome in found.classes}
    return {**_head(answer), "states": states}


def _head(answer: TestAnswer) -> dict[str, Any]:
    return {
        "origin": answer.test.origin,
        "models_ran": [found.model for found in answer.models if found.runs],
        "models_skipped": [found.model for found in answer.skipped],
        "skipped_proportion": round(answer.proportion, 4),
        "reasons_skipped": list(reasons_skipped(answer)),
        "models_mixed": [found.model for found in answer.mixed],
        "models_not_applicable": list(answer.not_applicable),
    }


def reasons_skipped(answer: TestAnswer) -> Iterator[str]:
    """`model: reason` for each model that skips the test; where its classes differ, every reason."""
    return (f"{found.model}: {'; '.join(found.reasons)}" for found in answer.skipped)


def to_text(answers: Iterable[TestAnswer]) -> str:
    """The entries of many tests as one JSON object, a line for each test.

    It equals `as_json` of each. Thousands of classes share an outcome, whose text is made once: indenting 50,000 rows,
    or only making each anew, takes longer than scanning.
    """
    texts = _Texts()
    with collector_paused():
        lines = [f"{json.dumps(answer.test.name)}: {_entry_text(answer, texts)}" for answer in answers]
        return "{\n" + ",\n".join(lines) + "\n}\n"


class _Texts:
    """The JSON text of each outcome and of each class's key, by identity."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[object, str]] = {}

    def of_outcome(self, outcome: Outcome) -> str:
        known = self._texts.get(id(outcome))
        if known is None:
            known = self._texts[id(outcome)] = (outcome, json.dumps(_state(outcome), ensure_ascii=False))
        return known[1]

    def of_key(self, cls: ModelClass) -> str:
        known = self._texts.get(id(cls))
        if known is None:
            known = self._texts[id(cls)] = (cls, json.dumps(cls.key, ensure_ascii=False))
        return known[1]


def _entry_text(answer: TestAnswer, texts: _Texts) -> str:
    head = json.dumps(_head(answer), ensure_ascii=False)
    states = ", ".join(
        [
            f"{texts.of_key(cls)}: {texts.of_outcome(outcome)}"
            for found in answer.models
            for cls, outcome in found.classes
        ]
    )
    return f'{head[:-1]}, "states": {{{states}}}}}'


def _model_answer(model: str, test: str, classes: Iterable[ModelClass]) -> ModelAnswer:
    told = tuple([(cls, cls.outcomes[test]) for cls in classes])
    if len(told) == 1:
        outcome = told[0][1]
        return ModelAnswer(model, outcome.state.value, outcome.runs, told)
    running = {outcome.runs for _, outcome in told}
    states = [outcome.state for _, outcome in told]
    if len(running) > 1:
        state = MIXED
    elif len(set(states)) == 1:
        state = states[0].value
    else:
        state = max(states, key=states.count).value
    return ModelAnswer(model, state, True in running, told)


def _state(outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = {
        "state": outcome.state.value,
        "reason": outcome.reason,
        "path": outcome.path,
        "line": outcome.line,
    }
    if outcome.condition:
        told["condition"] = outcome.condition
    if outcome.variants:
        told["variants"] = {name: _state(variant) for name, variant in outcome.variants}
    return told


def counts_by_state(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many of the outcomes that don't run are in each state, the most frequent first."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        if not outcome.runs:
            counts[outcome.state.value] = counts.get(outcome.state.value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
