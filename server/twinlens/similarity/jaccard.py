"""The Jaccard score over identifier sets, by an inverted index, with the standard library alone."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Sequence


class JaccardIndex:
    """Which rows hold which token. A score is |A∩B| / |A∪B| over identifier sets."""

    def __init__(self, token_sets: Sequence[Collection[str]]) -> None:
        self._sizes = array("I", map(len, token_sets))
        self._postings: dict[str, array[int]] = {}
        for row, tokens in enumerate(token_sets):
            for token in tokens:
                self._postings.setdefault(token, array("I")).append(row)

    def scores(self, tokens: Collection[str]) -> dict[int, float]:
        """Row to score, for every row that shares a token with `tokens`."""
        shared: Counter[int] = Counter()
        for token in tokens:
            shared.update(self._postings.get(token, ()))
        size, sizes = len(tokens), self._sizes
        return {row: count / (size + sizes[row] - count) for row, count in shared.items()}
