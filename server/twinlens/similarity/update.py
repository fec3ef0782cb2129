"""An index in memory after some of its library's files have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from twinlens.similarity.corpus import Entry, FileEntries
from twinlens.similarity.indexed import Index
from twinlens.source.ties import NO_TIES

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Updated:
    """`index` has its new rows behind the old ones, from `first_new` on; those in `dead` left the library."""

    index: Index
    dead: frozenset[int]
    first_new: int


def updated(
    index: Index,
    dead: Collection[int],
    files: Sequence[FileEntries],
    encode: Callable[[Sequence[str]], np.ndarray] | None,
) -> Updated:
    """`index` with `files` in place of what they held before; one without a digest is gone.

    A definition whose code is what it was keeps its row. `encode` embeds sanitised sources; None leaves the embeddings
    out.
    """
    entries, gone = list(index.entries), set(dead)
    names = {file.relative for file in files}
    before = {entry.identifier: row for row, entry in enumerate(entries) if entry.relative in names and row not in gone}
    fresh: list[Entry] = []
    for entry in (entry for file in files for entry in file.entries):
        row = before.get(entry.identifier)
        if row is not None and entries[row].sanitised == entry.sanitised:
            entries[row] = entry
            del before[entry.identifier]
        else:
            fresh.append(entry)
    gone.update(before.values())
    after = replace(
        index,
        entries=(*entries, *fresh),
        tokens=(*index.tokens, *(entry.tokens() for entry in fresh)),
        embeddings=_embeddings(index, fresh, encode),
        digests=_with(index.digests, {file.relative: file.digest or None for file in files}),
        ties=_with(index.ties, {file.relative: file.ties if file.ties != NO_TIES else None for file in files}),
        dates=_with(index.dates, {file.relative: file.date for file in files}),
    )
    return Updated(_with_features(after, gone), frozenset(gone), len(entries))


def _embeddings(
    index: Index, fresh: Sequence[Entry], encode: Callable[[Sequence[str]], np.ndarray] | None
) -> np.ndarray | None:
    if index.embeddings is None or encode is None:
        return None
    if not fresh:
        return index.embeddings
    import numpy as np

    return np.concatenate([index.embeddings, encode([entry.sanitised for entry in fresh])])


def _with_features(index: Index, dead: Collection[int]) -> Index:
    if index.features is None:
        return index
    from twinlens.similarity.feature_table import table_of

    sources = {entry.sameness: entry.sanitised for row, entry in enumerate(index.entries) if row not in dead}
    return replace(index, features=table_of(sources, index.features))


def _with(before: Mapping[str, T], changes: Mapping[str, T | None]) -> dict[str, T]:
    """`before` with `changes`; None takes a key away."""
    after = {**before, **changes}
    return {key: value for key, value in after.items() if value is not None}
