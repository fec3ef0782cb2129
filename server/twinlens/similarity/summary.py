"""A whole file at a glance: which library models its definitions resemble most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinlens.similarity.answers import Answer, RankedMatch

LEAST_SCORE = 0.1
"""Below this chance that a maintainer would inherit from it, an entry is no match."""


@dataclass(frozen=True, slots=True)
class Covered:
    """A model that covers definitions of the file: their names, and the mean score of the matches, from 0 to 1.

    `also` are the models that cover nothing besides: its descendants and ancestors with equal code.
    """

    model: str
    definitions: tuple[str, ...]
    score: float
    also: tuple[str, ...]


def summarise(answers: Mapping[str, Answer]) -> tuple[Covered, ...]:
    """The models that cover the definitions in `answers` (name → answer), the ones that cover most first.

    A definition is covered by the models of its first ranked entry: of the match and its twins.
    """
    first = {name: answer.ranked[0] for name, answer in answers.items() if answer.ranked}
    best = {name: ranked for name, ranked in first.items() if ranked.score >= LEAST_SCORE}
    covered: dict[str, dict[str, float]] = defaultdict(dict)
    for name, ranked in best.items():
        for model in _models(ranked):
            covered[model][name] = ranked.score
    shown = {model: sum(ranked.match.model == model for ranked in best.values()) for model in covered}
    order = sorted(covered, key=lambda model: (-_weight(covered[model].values()), -shown[model], model))
    return tuple(_folded(order, covered))


def _models(ranked: RankedMatch) -> set[str]:
    return {ranked.match.model, *(twin.partition("::")[0] for twin in ranked.twins)}


def _weight(scores: Collection[float]) -> float:
    """Count × mean²: many definitions count for more than few, good matches for more than poor ones."""
    return sum(scores) ** 2 / len(scores)


def _folded(order: Sequence[str], covered: Mapping[str, Mapping[str, float]]) -> Iterator[Covered]:
    """Each model under the first in `order` that covers all that it covers."""
    under: dict[str, list[str]] = {}
    for model in order:
        holder = next((first for first in under if covered[model].keys() <= covered[first].keys()), None)
        if holder is None:
            under[model] = []
        else:
            under[holder].append(model)
    for model, also in under.items():
        scores = covered[model]
        yield Covered(model, tuple(scores), sum(scores.values()) / len(scores), tuple(also))
