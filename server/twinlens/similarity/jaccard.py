"""The Jaccard score over identifier sets, by an inverted index, with the standard library alone."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Collection, Iterable, Sequence


class JaccardIndex:
    """Which rows hold which token. A score is |A∩B| / |A∪B| over identifier sets."""

    def __init__(self, token_sets: Iterable[Collection[str]]) -> None:
        self._sizes = array("I")
        self._postings: dict[str, array[int]] = {}
        self.extend(token_sets)

    def extend(self, token_sets: Iterable[Collection[str]]) -> None:
        """Add a row for each of `token_sets` behind the last one."""
        for tokens in token_sets:
            row = len(self._sizes)
            self._sizes.append(len(tokens))
            for token in tokens:
                self._postings.setdefault(token, array("I")).append(row)

    def scores(self, tokens: Collection[str]) -> Sequence[float]:
        """The score of each row."""
        shared = [0] * len(self._sizes)
        for token in tokens:
            for row in self._postings.get(token, ()):
                shared[row] += 1
        size = len(tokens)
        return [
            count / (size + other - count) if count else 0.0 for count, other in zip(shared, self._sizes, strict=True)
        ]

    def best(self, scores: Sequence[float], allowed: bytearray, count: int) -> list[int]:
        """The `count` rows of the highest scores above zero among those where `allowed` is not 0, best first."""
        rows = [row for row, score in enumerate(scores) if score and allowed[row]]
        return heapq.nsmallest(count, rows, key=lambda row: (-scores[row], row))
