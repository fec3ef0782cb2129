"""The features of a whole library, one row for each distinct source, and how alike a definition is to each row."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twinlens.similarity.features import SETS, Features, features_of
from twinlens.similarity.postings import Postings

LIKENESS = ("trigrams", "coverage", "lines", "methods", "attributes", "role")
"""The columns of `FeatureTable.likeness`."""

_TEXTS_A_TASK = 256


@dataclass(frozen=True)
class FeatureTable:
    """`keys` names each row, by the sameness of its source; `sets` holds the postings of each of `SETS`; `lengths`,
    float32 (rows,), counts the tokens of each source.
    """

    keys: tuple[str, ...]
    sets: dict[str, Postings]
    lengths: np.ndarray

    @classmethod
    def of(cls, rows: Mapping[str, Features]) -> FeatureTable:
        sets = {name: Postings.of_sets([getattr(row, name) for row in rows.values()]) for name in SETS}
        return cls(tuple(rows), sets, np.array([row.length for row in rows.values()], dtype=np.float32))

    def extended(self, rows: Mapping[str, Features]) -> FeatureTable:
        """With further rows behind the last one."""
        more = FeatureTable.of(rows)
        sets = {name: self.sets[name].extended(more.sets[name]) for name in SETS}
        return FeatureTable(self.keys + more.keys, sets, np.concatenate([self.lengths, more.lengths]))

    def only(self, keys: Collection[str]) -> FeatureTable:
        """Its rows that are named in `keys`."""
        kept = np.array([key in keys for key in self.keys], dtype=bool)
        sets = {name: postings.only(kept) for name, postings in self.sets.items()}
        return FeatureTable(tuple(key for key in self.keys if key in keys), sets, self.lengths[kept])

    def __len__(self) -> int:
        return len(self.keys)

    def likeness(self, query: Features) -> np.ndarray:
        """How alike `query` is to each row: float64 (rows, len(LIKENESS)), each in [0, 1].

        `trigrams`, `attributes` and `role` are |A∩B| / |A∪B|; `coverage` is the share of the query's trigrams that the
        row has; `lines` a cosine over lines weighted by inverse document frequency; `methods` the share of the row's
        tokens that stands in methods equal to the query's.
        """
        common = self.sets["trigrams"].shared(query.trigrams)
        return np.stack(
            [
                _jaccard(common, len(query.trigrams), self.sets["trigrams"].sizes),
                common / max(1, len(query.trigrams)),
                self._line_cosine(query.lines),
                self.sets["methods"].shared(query.methods, query.method_sizes) / np.maximum(1, self.lengths),
                self._overlap("attributes", query.attributes),
                self._overlap("role", query.role),
            ],
            axis=1,
        )

    def _overlap(self, name: str, keys: np.ndarray) -> np.ndarray:
        return _jaccard(self.sets[name].shared(keys), len(keys), self.sets[name].sizes)

    def _line_cosine(self, lines: np.ndarray) -> np.ndarray:
        squares = self._rarity(self.sets["lines"].frequencies(lines)) ** 2
        length = np.sqrt(squares.sum())
        return self.sets["lines"].shared(lines, squares) / np.maximum(1e-9, self._line_lengths * length)

    def _rarity(self, frequencies: np.ndarray) -> np.ndarray:
        return np.log((1 + len(self)) / (1 + frequencies))

    @cached_property
    def _line_lengths(self) -> np.ndarray:
        lines = self.sets["lines"]
        _, places, counts = np.unique(lines.keys, return_inverse=True, return_counts=True)
        return np.sqrt(np.bincount(lines.rows, self._rarity(counts)[places] ** 2, minlength=len(self)))


def table_of(sources: Mapping[str, str], known: FeatureTable | None = None) -> FeatureTable:
    """The table of the sanitised `sources`, by their sameness; rows of `known` are used again."""
    kept = known.only(sources.keys()) if known is not None else FeatureTable.of({})
    present = set(kept.keys)
    fresh = {key: text for key, text in sources.items() if key not in present}
    return kept.extended(dict(zip(fresh, _features(list(fresh.values())), strict=True)))


def _features(texts: Sequence[str]) -> Iterator[Features]:
    workers = min(os.cpu_count() or 1, 8)
    if len(texts) <= 2 * _TEXTS_A_TASK or workers == 1:
        yield from map(features_of, texts)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(features_of, texts, chunksize=_TEXTS_A_TASK)


def _jaccard(common: np.ndarray, size: int, sizes: np.ndarray) -> np.ndarray:
    return common / np.maximum(1, size + sizes - common)
