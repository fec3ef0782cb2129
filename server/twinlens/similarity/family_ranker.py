"""A file's definitions, ranked against the families of a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from twinlens.similarity.answers import QueryDefinition, QueryFile
from twinlens.similarity.catalogue import Catalogue
from twinlens.similarity.feature_table import FeatureTable
from twinlens.similarity.features import features_of
from twinlens.similarity.rank import Candidates, Family, Question, Ranker, fitted_weights

_KEPT = 2048
"""How many definitions' candidates are remembered, so that typing in one class ranks only that one anew."""


class FamilyRanker:
    """Remembers the candidates of definitions that it was asked about."""

    def __init__(self, table: FeatureTable, catalogue: Catalogue) -> None:
        self._ranker = Ranker(table, families_of(table, catalogue), fitted_weights())
        self._candidates = lru_cache(maxsize=_KEPT)(self._find)

    def best(
        self, query: QueryFile, wanted: Sequence[QueryDefinition], left_out: frozenset[str], count: int
    ) -> list[list[tuple[int, float]]]:
        """For each of `wanted`, definitions of `query`, the places in the catalogue's `families` of the `count` best,
        with their scores.

        Families all of whose members are in models of `left_out` are not considered.
        """
        belief: Any = sum(self._of(definition, query.model, left_out).belief for definition in query.definitions)
        others = len(query.definitions) - 1
        rankings = []
        for definition in wanted:
            own = self._of(definition, query.model, left_out)
            # The file's sum less its own, so that a file of thousands is not summed up for each of them.
            kin = np.maximum(0, belief - own.belief) / others if others else None
            rankings.append([(placed.family, placed.score) for placed in self._ranker.ranking(own, kin, count)])
        return rankings

    def _of(self, definition: QueryDefinition, model: str, left_out: frozenset[str]) -> Candidates:
        return self._candidates(definition.sanitised, definition.kind == "class", model, left_out)

    def _find(self, sanitised: str, is_class: bool, model: str, left_out: frozenset[str]) -> Candidates:
        return self._ranker.candidates(Question(features_of(sanitised), is_class, model), left_out)


def families_of(table: FeatureTable, catalogue: Catalogue) -> list[Family]:
    """The catalogue's families with their rows in the table."""
    rows = {key: row for row, key in enumerate(table.keys)}
    return [
        Family(
            rows[family.key],
            catalogue.entries[family.rows[0]].kind == "class",
            tuple(catalogue.entries[row].model for row in family.rows),
            family.children,
        )
        for family in catalogue.families
    ]
