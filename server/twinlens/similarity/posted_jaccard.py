"""`JaccardIndex` by numpy: the same answers in a hundredth of the time."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from twinlens.similarity.postings import Postings


class PostedJaccard:
    """Which rows hold which token. A score is |A∩B| / |A∪B| over identifier sets."""

    def __init__(self, token_sets: Iterable[Collection[str]]) -> None:
        self._numbers: dict[str, int] = {}
        self._postings = Postings.of_sets(())
        self.extend(token_sets)

    def extend(self, token_sets: Iterable[Collection[str]]) -> None:
        """Add a row for each of `token_sets` behind the last one."""
        numbers, rows = self._numbers, tuple(token_sets)
        sizes = np.array([len(tokens) for tokens in rows], dtype=np.int32)
        keys = (numbers.setdefault(token, len(numbers)) for tokens in rows for token in tokens)
        more = Postings.of_keys(np.fromiter(keys, dtype=np.uint32, count=int(sizes.sum())), sizes)
        self._postings = self._postings.extended(more)

    def scores(self, tokens: Collection[str]) -> np.ndarray:
        """The score of each row; float64 (rows,)."""
        known = [self._numbers[token] for token in tokens if token in self._numbers]
        shared = self._postings.shared(np.array(known, dtype=np.uint32))
        return shared / np.maximum(1, len(tokens) + self._postings.sizes - shared)

    def best(self, scores: np.ndarray, allowed: bytearray, count: int) -> list[int]:
        """The `count` rows of the highest scores above zero among those where `allowed` is not 0, best first."""
        masked = np.where(np.frombuffer(allowed, dtype=bool), scores, 0)
        if count < len(masked):
            least = np.partition(masked, -count)[-count]
            rows = np.flatnonzero((masked >= least) & (masked > 0))
        else:
            rows = np.flatnonzero(masked > 0)
        return rows[np.lexsort((rows, -masked[rows]))][:count].tolist()
