"""Nearest neighbours among the library's embeddings, by faiss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

EXACT_UP_TO = 200_000
"""Rows up to which every one of them is compared with a query."""

_FEW = 1000
_SHARE_PROBED = 1 / 16
_ROWS_A_CELL_LEARNS_FROM = 64
_SEED = 673


class VectorIndex:
    """The library's embeddings, float32 (n, d) with rows of unit length or zero.

    Up to `exact_up_to` rows the search is exact. Beyond, rows are sorted into about √n cells by k-means, and a search
    reads the sixteenth of the cells whose centres are nearest (faiss `IndexIVFFlat`).
    """

    def __init__(self, embeddings: np.ndarray, exact_up_to: int = EXACT_UP_TO) -> None:
        import faiss

        self._rows = embeddings
        self._index: Any = _exact(embeddings) if len(embeddings) <= exact_up_to else _in_cells(embeddings)
        self.exact = len(embeddings) <= exact_up_to
        # One vector at a time is too little work to share: threads would mostly wait for each other.
        faiss.omp_set_num_threads(1)

    def nearest(self, vector: np.ndarray, allowed: bytearray, count: int) -> Mapping[int, float]:
        """Row to cosine of the `count` nearest rows among those where `allowed` is not 0, nearest first."""
        left_out = allowed.count(0)
        if left_out <= _FEW:
            # Reading a few rows too many is far cheaper than asking faiss to test each row.
            scores, rows = self._index.search(vector[None], min(count + left_out, len(allowed)))
        else:
            scores, rows = self._index.search(vector[None], min(count, len(allowed)), params=self._only(allowed))
        found = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return dict([(row, score) for row, score in found if row >= 0 and allowed[row]][:count])

    def cosines(self, vector: np.ndarray, rows: list[int]) -> list[float]:
        return (self._rows[rows] @ vector).tolist()

    def extend(self, embeddings: np.ndarray) -> None:
        """Take up `embeddings`: the rows that there are and further ones behind them."""
        self._index.add(np.ascontiguousarray(embeddings[len(self._rows) :]))
        self._rows = embeddings

    def _only(self, allowed: bytearray) -> Any:
        import faiss

        bits = np.packbits(np.frombuffer(allowed, dtype=bool), bitorder="little")
        parameters: Any = faiss.SearchParameters() if self.exact else faiss.SearchParametersIVF()
        parameters.sel = faiss.IDSelectorBitmap(len(allowed), faiss.swig_ptr(bits))
        # faiss keeps only an address: the array must live as long as the parameters.
        parameters.twinlens_bits = bits
        if not self.exact:
            parameters.nprobe = self._index.nprobe
        return parameters


def _exact(embeddings: np.ndarray) -> Any:
    import faiss

    index: Any = faiss.IndexFlatIP(embeddings.shape[1])
    index.add(embeddings)
    return index


def _in_cells(embeddings: np.ndarray) -> Any:
    import faiss

    count, width = embeddings.shape
    cells = max(1, round(count**0.5))
    index: Any = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, cells, faiss.METRIC_INNER_PRODUCT)
    picked = np.random.default_rng(_SEED).permutation(count)[: _ROWS_A_CELL_LEARNS_FROM * cells]
    index.train(embeddings[np.sort(picked)])
    index.add(embeddings)
    index.nprobe = max(1, round(_SHARE_PROBED * cells))
    return index
