"""Where it is decided that a test does not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twinlens.skips.results import ModelClass, Scan
from twinlens.skips.states import Outcome, State


@dataclass(frozen=True, slots=True)
class Place:
    """A line that keeps one test of one class from running; `path` is relative to the checkout."""

    path: str
    line: int
    model: str
    class_name: str
    test: str
    state: State
    reason: str


def places_of_test(scan: Scan, test: str) -> list[Place]:
    """The places that keep a test from running in any class of any model, each once."""
    classes = (cls for models in scan.of_test(test).values() for cls in models)
    return _distinct(_place(cls, test, cls.outcomes[test]) for cls in classes)


def places_of_class(scan: Scan, path: str, class_name: str) -> list[Place]:
    """The places that keep common tests of one class from running, each once."""
    classes = (cls for cls in scan.classes if (cls.path, cls.name) == (path, class_name))
    return _distinct(_place(cls, test, outcome) for cls in classes for test, outcome in cls.outcomes.items())


def _place(cls: ModelClass, test: str, outcome: Outcome) -> Place | None:
    if outcome.runs:
        return None
    return Place(outcome.path, outcome.line, cls.model, cls.name, test, outcome.state, outcome.reason)


def _distinct(places: Iterable[Place | None]) -> list[Place]:
    first: dict[tuple[str, int], Place] = {}
    for place in places:
        if place is not None:
            first.setdefault((place.path, place.line), place)
    return sorted(first.values(), key=lambda place: (place.path, place.line))


def skipping_states(scan: Scan, test: str) -> Iterator[State]:
    """The states of the classes that don't run a test."""
    for models in scan.of_test(test).values():
        for cls in models:
            if not cls.outcomes[test].runs:
                yield cls.outcomes[test].state
