"""Nearest neighbours among the library's embeddings, by faiss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class VectorIndex:
    """The library's embeddings, float32 (n, d) with rows of unit length or zero, searched exactly."""

    def __init__(self, embeddings: np.ndarray) -> None:
        import faiss

        self._rows = embeddings
        self._index: Any = faiss.IndexFlatIP(embeddings.shape[1])
        self._index.add(embeddings)

    def extend(self, rows: np.ndarray) -> None:
        """Add `rows` behind the last one."""
        self._index.add(rows)
        self._rows = np.concatenate([self._rows, rows])

    def nearest(self, vector: np.ndarray, allowed: bytearray, count: int) -> Mapping[int, float]:
        """Row to cosine of the `count` nearest rows among those where `allowed` is not 0, nearest first."""
        import faiss

        bits = np.packbits(np.frombuffer(allowed, dtype=bool), bitorder="little")
        selector = faiss.IDSelectorBitmap(len(allowed), faiss.swig_ptr(bits))
        parameters: Any = faiss.SearchParameters()
        parameters.sel = selector
        scores, rows = self._index.search(vector[None], min(count, len(allowed)), params=parameters)
        return {row: score for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True) if row >= 0}

    def cosines(self, vector: np.ndarray, rows: list[int]) -> list[float]:
        return (self._rows[rows] @ vector).tolist()
