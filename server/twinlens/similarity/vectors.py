"""Nearest neighbours among the library's embeddings, by faiss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_FEW = 1000


class VectorIndex:
    """The library's embeddings, float32 (n, d) with rows of unit length or zero, searched exactly."""

    def __init__(self, embeddings: np.ndarray) -> None:
        import faiss

        self._rows = embeddings
        self._index: Any = faiss.IndexFlatIP(embeddings.shape[1])
        self._index.add(embeddings)
        # One vector at a time is too little work to share: threads would mostly wait for each other.
        faiss.omp_set_num_threads(1)

    def extend(self, rows: np.ndarray) -> None:
        """Add `rows` behind the last one."""
        self._index.add(rows)
        self._rows = np.concatenate([self._rows, rows])

    def nearest(self, vector: np.ndarray, allowed: bytearray, count: int) -> Mapping[int, float]:
        """Row to cosine of the `count` nearest rows among those where `allowed` is not 0, nearest first."""
        left_out = allowed.count(0)
        if left_out <= _FEW:
            # Reading a few rows too many is far cheaper than asking faiss to test each row.
            scores, rows = self._index.search(vector[None], min(count + left_out, len(allowed)))
        else:
            scores, rows = self._index.search(vector[None], min(count, len(allowed)), params=_only(allowed))
        found = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return dict([(row, score) for row, score in found if row >= 0 and allowed[row]][:count])

    def cosines(self, vector: np.ndarray, rows: list[int]) -> list[float]:
        return (self._rows[rows] @ vector).tolist()


def _only(allowed: bytearray) -> Any:
    import faiss

    bits = np.packbits(np.frombuffer(allowed, dtype=bool), bitorder="little")
    parameters: Any = faiss.SearchParameters()
    parameters.sel = faiss.IDSelectorBitmap(len(allowed), faiss.swig_ptr(bits))
    # faiss keeps only an address: the array must live as long as the parameters.
    parameters.twinlens_bits = bits
    return parameters
