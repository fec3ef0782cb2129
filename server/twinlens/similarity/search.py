"""Ask an index which of its definitions resemble those of a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlens.similarity.answers import Answer, QueryDefinition, QueryFile, RankedMatch
from twinlens.similarity.catalogue import Catalogue
from twinlens.similarity.corpus import FileEntries
from twinlens.similarity.indexed import Index
from twinlens.similarity.jaccard import JaccardIndex
from twinlens.similarity.update import updated
from twinlens.source.sanitise import identifier_tokens

if TYPE_CHECKING:
    import numpy as np

    from twinlens.similarity.embedder import Embedder
    from twinlens.similarity.family_ranker import FamilyRanker
    from twinlens.similarity.posted_jaccard import PostedJaccard
    from twinlens.similarity.vectors import VectorIndex


class Searcher:
    """An index ready to be asked. Without an embedder it answers by Jaccard alone, without features it ranks by it."""

    def __init__(self, index: Index, roots: Sequence[Path], embedder: Embedder | None = None) -> None:
        """`roots` are the library's folders: they turn an entry's relative path into a file to open."""
        self.index = index
        self._roots = roots
        self._dead: frozenset[int] = frozenset()
        self._catalogue = Catalogue(index.entries, index.ties, index.release_dates(), roots)
        self._jaccard: JaccardIndex | PostedJaccard = _jaccard_index(index)
        self._embedder = embedder if index.embeddings is not None else None
        self._vectors = _vector_index(index) if self._embedder is not None else None
        self._ranker = _family_ranker(index, self._catalogue)

    @property
    def definitions(self) -> int:
        """How many definitions can be named in an answer."""
        return len(self.index.entries) - len(self._dead)

    def update(self, files: Sequence[FileEntries]) -> None:
        """Answer from what `files` hold now instead of what they held; one without a digest is gone. The index in
        memory alone changes.
        """
        if not files:
            return
        after = updated(self.index, self._dead, files, self._embedder.encode if self._embedder else None)
        self.index, self._dead = after.index, after.dead
        self._catalogue = Catalogue(
            self.index.entries, self.index.ties, self.index.release_dates(), self._roots, self._dead
        )
        self._jaccard.extend(self.index.tokens[after.first_new :])
        if self._vectors is not None and self.index.embeddings is not None:
            self._vectors.extend(self.index.embeddings)
        self._ranker = _family_ranker(self.index, self._catalogue)

    def answers(
        self, query: QueryFile, names: Sequence[str], top_k: int = 5, before: date | None = None
    ) -> list[Answer]:
        """One answer for each of `names`, which are definitions of `query`; models that are known to be newer than
        `before` are left out. Raises `KeyError` for another name.
        """
        by_name = {definition.name: definition for definition in query.definitions}
        wanted = [by_name[name] for name in names]
        if self._embedder is None or not wanted:
            vectors: Sequence[np.ndarray | None] = [None] * len(wanted)
        else:
            vectors = list(self._embedder.encode([definition.sanitised for definition in wanted]))
        left_out = self._catalogue.models_left_out(query.model, before)
        allowed = self._catalogue.allowed(left_out)
        rankings = self._rankings(query, wanted, left_out, top_k)
        return [
            self._answer(query.model, definition, vector, allowed, ranking, top_k)
            for definition, vector, ranking in zip(wanted, vectors, rankings, strict=True)
        ]

    def _rankings(
        self, query: QueryFile, wanted: Sequence[QueryDefinition], left_out: frozenset[str], top_k: int
    ) -> list[list[tuple[int, float]] | None]:
        """For each definition the places of the best families with their scores; None where there are no features."""
        if self._ranker is None:
            return [None] * len(wanted)
        return [*self._ranker.best(query, wanted, left_out, top_k)]

    def _answer(
        self,
        model: str,
        definition: QueryDefinition,
        vector: np.ndarray | None,
        allowed: bytearray,
        ranking: list[tuple[int, float]] | None,
        top_k: int,
    ) -> Answer:
        shares: Any = self._jaccard.scores(identifier_tokens(definition.sanitised))
        by_share = self._jaccard.best(shares, allowed, top_k)
        nearest = self._vectors.nearest(vector, allowed, top_k) if self._vectors and vector is not None else {}
        agreed = set(by_share) & set(nearest)
        if ranking is None:
            ranking = self._by_score(shares, vector, allowed, top_k)
        shown = [next(row for row in self._catalogue.families[family].rows if allowed[row]) for family, _ in ranking]
        parents = self._catalogue.parents(model, definition.name)
        rows = [*nearest, *by_share, *shown, *parents]
        cosines = self._cosines(vector, rows)
        matches = {
            row: self._catalogue.match(row, cosine, float(shares[row]), row in agreed)
            for row, cosine in zip(rows, cosines, strict=True)
        }
        return Answer(
            tuple(matches[row] for row in nearest),
            tuple(matches[row] for row in by_share),
            tuple(matches[row].identity for row in nearest if row in agreed),
            tuple(
                RankedMatch(
                    matches[row],
                    score,
                    tuple(
                        self._catalogue.entries[twin].identity
                        for twin in self._catalogue.families[family].rows
                        if twin != row and allowed[twin]
                    ),
                    self._catalogue.ancestors(row),
                )
                for row, (family, score) in zip(shown, ranking, strict=True)
            ),
            tuple(matches[row] for row in parents),
        )

    def _cosines(self, vector: np.ndarray | None, rows: list[int]) -> Sequence[float | None]:
        if self._vectors is None or vector is None:
            return [None] * len(rows)
        return self._vectors.cosines(vector, rows)

    def _by_score(
        self, shares: Any, vector: np.ndarray | None, allowed: bytearray, top_k: int
    ) -> list[tuple[int, float]]:
        """Families by the mean of both scores of their best rows, for an index that has no features."""
        rows = self._jaccard.best(shares, allowed, _CANDIDATES)
        if self._vectors is not None and vector is not None:
            rows = list(dict.fromkeys([*rows, *self._vectors.nearest(vector, allowed, _CANDIDATES)]))
        best: dict[int, float] = {}
        for row, cosine in zip(rows, self._cosines(vector, rows), strict=True):
            share = float(shares[row])
            score = share if cosine is None else (share + cosine) / 2
            family = self._catalogue.family_of[row]
            best[family] = max(score, best.get(family, score))
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:top_k]


_CANDIDATES = 200


def _jaccard_index(index: Index) -> JaccardIndex | PostedJaccard:
    if index.features is None and index.embeddings is None:
        return JaccardIndex(index.tokens)
    from twinlens.similarity.posted_jaccard import PostedJaccard

    return PostedJaccard(index.tokens)


def _vector_index(index: Index) -> VectorIndex:
    from twinlens.similarity.vectors import VectorIndex

    assert index.embeddings is not None
    return VectorIndex(index.embeddings)


def _family_ranker(index: Index, catalogue: Catalogue) -> FamilyRanker | None:
    if index.features is None:
        return None
    from twinlens.similarity.family_ranker import FamilyRanker

    return FamilyRanker(index.features, catalogue)
