"""An inverted index over sets of hashes: which rows hold a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Postings:
    """`keys` (uint32, ascending) and `rows` (int32) are parallel: row `rows[i]` holds key `keys[i]`. `sizes` (int32)
    counts the keys of each row.
    """

    keys: np.ndarray
    rows: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of_sets(cls, sets: Sequence[np.ndarray]) -> Postings:
        """From one array of distinct keys a row."""
        sizes = np.array([len(keys) for keys in sets], dtype=np.int32)
        return cls.of_keys(np.concatenate([*sets, np.zeros(0, dtype=np.uint32)]), sizes)

    @classmethod
    def of_keys(cls, keys: np.ndarray, sizes: np.ndarray) -> Postings:
        """From the keys of all rows, one row after another; `sizes` tells where a row ends."""
        rows = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], rows[order], sizes)

    def extended(self, more: Postings) -> Postings:
        """With the rows of `more` behind its own."""
        places = np.searchsorted(self.keys, more.keys, side="right")
        return Postings(
            np.insert(self.keys, places, more.keys),
            np.insert(self.rows, places, more.rows + np.int32(len(self.sizes))),
            np.concatenate([self.sizes, more.sizes]),
        )

    def only(self, kept: np.ndarray) -> Postings:
        """Without the rows where `kept`, bool (rows,), is False; the others close up."""
        places = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        held = kept[self.rows]
        return Postings(self.keys[held], places[self.rows[held]], self.sizes[kept])

    def shared(self, keys: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """For each row the number of `keys` that it holds, or the sum of their `weights`; float64 (rows,)."""
        starts, counts = self._runs(keys)
        runs = [self.rows[start : start + count] for start, count in zip(starts.tolist(), counts.tolist(), strict=True)]
        rows = np.concatenate([*runs, self.rows[:0]])
        spread = None if weights is None else np.repeat(weights, counts)
        return np.bincount(rows, spread, minlength=len(self.sizes)).astype(np.float64, copy=False)

    def frequencies(self, keys: np.ndarray) -> np.ndarray:
        """In how many rows each of `keys` stands; int64."""
        return self._runs(keys)[1]

    def _runs(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts = np.searchsorted(self.keys, keys, side="left")
        return starts, np.searchsorted(self.keys, keys, side="right") - starts
