"""Which library definition a maintainer would inherit from: candidates by likeness, then by the file's other classes.

The first score of a family (a set of twins) is a weighted sum of how alike its source is, how many children it has and
how alike the models' names are.
It yields, for each definition of the file, how the belief spreads over the library's models; what the file's other
definitions believe is the evidence `kin` of the second score, because a new model mostly inherits from one or two.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from twinlens.similarity.feature_table import LIKENESS, FeatureTable
from twinlens.similarity.features import Features
from twinlens.similarity.model_names import name_likeness

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
FIRST = (*LIKENESS, "children", "name")
SECOND = (*FIRST, "kin", "kin_of_role")

_ROLE = FIRST.index("role")
_COVERAGE, _ATTRIBUTES = FIRST.index("coverage"), FIRST.index("attributes")
_CANDIDATES = 150
_FILES = 16
_BELIEVED = 20
_LITTLE_KIN = 0.02


@dataclass(frozen=True, slots=True)
class Weights:
    """`first` and `second` are float64 in the order of `FIRST` and `SECOND`. A score is the logistic function of
    `scale` · second sum + `offset`.
    """

    first: np.ndarray
    second: np.ndarray
    scale: float
    offset: float


@lru_cache(maxsize=1)
def fitted_weights() -> Weights:
    """The weights in `weights.json`, which names the command that fitted them."""
    raw = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return Weights(
        np.array([raw["first"][name] for name in FIRST]),
        np.array([raw["second"][name] for name in SECOND]),
        raw["scale"],
        raw["offset"],
    )


@dataclass(frozen=True, slots=True)
class Family:
    """A set of twins at row `row` of the feature table: the model of each member, and for each model that descends
    from it how many of its definitions do.
    """

    row: int
    is_class: bool
    models: tuple[str, ...]
    children: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Question:
    """A definition of `model` to be ranked."""

    features: Features
    is_class: bool
    model: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the first score leaves: places of families, best first, with their features, float64 (n, len(FIRST)), and
    their first score. `belief`, float64 (models,), is how much this definition speaks for each model.
    """

    families: np.ndarray
    features: np.ndarray
    scores: np.ndarray
    belief: np.ndarray


@dataclass(frozen=True, slots=True)
class Placed:
    """A family in a ranking: its place in `Ranker.families` and its score in (0, 1)."""

    family: int
    score: float


class Ranker:
    """Ranks the families of one library. All methods are pure; between calls it keeps how alike names of models are."""

    def __init__(self, table: FeatureTable, families: Sequence[Family], weights: Weights) -> None:
        self.families = tuple(families)
        self._table = table
        self._weights = weights
        self._rows = np.array([family.row for family in families], dtype=np.int64)
        self._is_class = np.array([family.is_class for family in families], dtype=bool)
        self._children = np.array([sum(family.children.values()) for family in families], dtype=np.float64)
        names = sorted({model for family in families for model in family.models})
        self._models = {name: place for place, name in enumerate(names)}
        self._names = lru_cache(maxsize=_FILES)(self._likeness_of_names)

    def candidates(self, question: Question, excluded: Collection[str]) -> Candidates:
        """The families that have a member in a model outside `excluded`, by their first score."""
        allowed = np.flatnonzero(self._allowed(excluded) & (self._is_class == question.is_class))
        likeness = self._table.likeness(question.features)[self._rows[allowed]]
        if not len(question.features.attributes) and len(allowed):
            # A function has none: one value for all orders nothing, and its score is on the scale of the others.
            likeness[:, _ATTRIBUTES] = likeness[:, _COVERAGE].max()
        children = np.log1p(self._children_outside(excluded)[allowed])
        names = self._best_member(self._outside(excluded, self._names(question.model)))[allowed]
        features = np.column_stack([likeness, children, names])
        scores = features @ self._weights.first
        best = _highest(scores, _CANDIDATES)
        found = allowed[best]
        return Candidates(found, features[best], scores[best], self._belief(found, scores[best], excluded))

    def ranking(self, candidates: Candidates, others: np.ndarray | None, count: int) -> tuple[Placed, ...]:
        """The `count` best of `candidates` by the second score; `others` is the mean belief of the file's other
        definitions, float64 (models,), None where it has none.
        """
        sums = self.evidence(candidates, others) @ self._weights.second
        scores = 1 / (1 + np.exp(-(self._weights.scale * sums + self._weights.offset)))
        order = _highest(sums, count)
        return tuple(Placed(int(candidates.families[place]), float(scores[place])) for place in order)

    def evidence(self, candidates: Candidates, others: np.ndarray | None) -> np.ndarray:
        """What the second score weighs: float64 (candidates, len(SECOND)); `others` as in `ranking`."""
        kin = self._kin(candidates, others)
        return np.column_stack([candidates.features, kin, kin * candidates.features[:, _ROLE]])

    def _kin(self, candidates: Candidates, others: np.ndarray | None) -> np.ndarray:
        """How much the other definitions speak for the models of each candidate, relative to the most; in [0, 1)."""
        if others is None or not len(candidates.families):
            return np.zeros(len(candidates.families))
        kin = self._best_member(others)[candidates.families]
        return kin / (kin.max() + _LITTLE_KIN)

    def _belief(self, families: np.ndarray, scores: np.ndarray, excluded: Collection[str]) -> np.ndarray:
        belief = np.zeros(len(self._models))
        if len(scores):
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            for family, chance in zip(families[:_BELIEVED], chances[:_BELIEVED], strict=True):
                start, end = self._member_starts[family : family + 2]
                members = self._member_models[start:end]
                belief[members] = np.maximum(belief[members], chance)
        return self._outside(excluded, belief)

    def _allowed(self, excluded: Collection[str]) -> np.ndarray:
        return self._best_member(self._outside(excluded, np.ones(len(self._models)))) > 0

    def _likeness_of_names(self, own: str) -> np.ndarray:
        return np.array([name_likeness(own, name) for name in self._models])

    def _outside(self, excluded: Collection[str], of_models: np.ndarray) -> np.ndarray:
        """`of_models` with 0 for those that are excluded."""
        found = of_models.copy()
        found[[self._models[name] for name in excluded if name in self._models]] = 0
        return found

    def _best_member(self, of_models: np.ndarray) -> np.ndarray:
        """For each family the greatest of its members' models' values."""
        if not len(self._member_models):
            return np.zeros(0)
        return np.maximum.reduceat(of_models[self._member_models], self._member_starts[:-1])

    def _children_outside(self, excluded: Collection[str]) -> np.ndarray:
        children = self._children.copy()
        for name in excluded:
            for family, count in self._children_by_model.get(name, ()):
                children[family] -= count
        return children

    @cached_property
    def _children_by_model(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        found: dict[str, list[tuple[int, int]]] = {}
        for place, family in enumerate(self.families):
            for model, count in family.children.items():
                found.setdefault(model, []).append((place, count))
        return found

    @cached_property
    def _member_models(self) -> np.ndarray:
        return np.array([self._models[name] for family in self.families for name in family.models], dtype=np.int64)

    @cached_property
    def _member_starts(self) -> np.ndarray:
        return np.cumsum([0, *(len(family.models) for family in self.families)])


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """The places of the `count` highest scores, highest first, equal ones by place."""
    places = np.arange(len(scores))
    if count < len(scores):
        places = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
    return places[np.argsort(-scores[places], kind="stable")][:count]
