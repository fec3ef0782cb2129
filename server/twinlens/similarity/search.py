"""Ask an index which of its definitions resemble those of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlens.similarity.answers import Answer, Match, QueryDefinition, QueryFile, RankedMatch
from twinlens.similarity.index import Index
from twinlens.similarity.jaccard import JaccardIndex
from twinlens.source.sanitise import identifier_tokens

if TYPE_CHECKING:
    import numpy as np

    from twinlens.similarity.embedder import Embedder

_CANDIDATES = 200
_MOST_OF_ONE_MODEL = 200


class Searcher:
    """An index ready to be asked. Without an embedder it answers by Jaccard alone."""

    def __init__(self, index: Index, roots: Sequence[Path], embedder: Embedder | None = None) -> None:
        """`roots` are the library's folders: they turn an entry's relative path into a file to open."""
        self._index = index
        self._roots = tuple(roots)
        self._jaccard = JaccardIndex(index.tokens)
        self._models = [_normal(entry.model) for entry in index.entries]
        self._embedder = embedder if index.embeddings is not None else None
        if index.embeddings is not None and embedder is not None:
            import faiss

            self._vectors: Any = faiss.IndexFlatIP(index.embeddings.shape[1])
            self._vectors.add(index.embeddings)

    def answers(self, query: QueryFile, names: Sequence[str], top_k: int = 5) -> list[Answer]:
        """One answer for each of `names`, which are definitions of `query`. Raises `KeyError` for another name."""
        by_name = {definition.name: definition for definition in query.definitions}
        wanted = [by_name[name] for name in names]
        if self._embedder is None or not wanted:
            vectors: Sequence[np.ndarray | None] = [None] * len(wanted)
        else:
            vectors = list(self._embedder.encode([definition.sanitised for definition in wanted]))
        own = _normal(query.model)
        return [
            self._answer(definition, vector, own, top_k) for definition, vector in zip(wanted, vectors, strict=True)
        ]

    def _answer(self, definition: QueryDefinition, vector: np.ndarray | None, own: str, top_k: int) -> Answer:
        shares = self._jaccard.scores(identifier_tokens(definition.sanitised))
        by_share = sorted((row for row in shares if self._models[row] != own), key=lambda row: (-shares[row], row))
        nearest = self._nearest(vector) if vector is not None else {}
        by_cosine = [row for row in nearest if self._models[row] != own]
        agreed = set(by_share[:top_k]) & set(by_cosine[:top_k])
        candidates = list(dict.fromkeys(by_cosine[:_CANDIDATES] + by_share[:_CANDIDATES]))
        cosines = self._cosines(vector, candidates) if vector is not None else dict.fromkeys(candidates)
        matches = {row: self._match(row, cosines[row], shares.get(row, 0.0), row in agreed) for row in candidates}
        return Answer(
            tuple(matches[row] for row in by_cosine[:top_k]),
            tuple(matches[row] for row in by_share[:top_k]),
            tuple(matches[row].identity for row in by_cosine[:top_k] if row in agreed),
            self._ranked(matches, top_k),
        )

    def _nearest(self, vector: np.ndarray) -> dict[int, float]:
        """Row to cosine of the rows nearest to `vector`, nearest first."""
        count = min(len(self._index.entries), _CANDIDATES + _MOST_OF_ONE_MODEL)
        scores, rows = self._vectors.search(vector[None], count)
        return {row: score for row, score in zip(rows[0].tolist(), scores[0].tolist(), strict=True) if row >= 0}

    def _cosines(self, vector: np.ndarray, rows: Sequence[int]) -> dict[int, float | None]:
        assert self._index.embeddings is not None
        return dict(zip(rows, (self._index.embeddings[list(rows)] @ vector).tolist(), strict=True))

    def _ranked(self, matches: Mapping[int, Match], top_k: int) -> tuple[RankedMatch, ...]:
        groups: dict[str, list[int]] = {}
        for row in sorted(matches, key=lambda row: (-_score(matches[row]), row)):
            groups.setdefault(self._index.entries[row].sanitised or str(row), []).append(row)
        return tuple(
            RankedMatch(
                matches[rows[0]], _score(matches[rows[0]]), tuple(matches[row].identity for row in rows[1:]), ()
            )
            for rows in list(groups.values())[:top_k]
        )

    def _match(self, row: int, cosine: float | None, share: float, in_both: bool) -> Match:
        entry = self._index.entries[row]
        path = next((root / entry.relative for root in self._roots if (root / entry.relative).is_file()), None)
        return Match(
            entry.model,
            entry.name,
            str(path or (self._roots[0] / entry.relative if self._roots else entry.relative)),
            entry.line,
            None if cosine is None else min(1.0, cosine),
            share,
            in_both,
        )


def _score(match: Match) -> float:
    return match.jaccard if match.embedding is None else (match.embedding + match.jaccard) / 2


def _normal(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", model.lower())
