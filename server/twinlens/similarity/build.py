"""Build an index over a library, touching only what has changed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from twinlens.similarity import index as on_disk
from twinlens.similarity.contents import IndexDamagedError
from twinlens.similarity.corpus import Entry, read_corpus
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.indexed import Index, index_of_corpus
from twinlens.source.library import Library

if TYPE_CHECKING:
    import numpy as np

    from twinlens.similarity.embedder import Embedder, LibraryEmbedder

Stage = Literal["waiting", "reading", "fitting", "encoding", "comparing", "writing", "tokens", "done"]

_SHARE_CHANGED_THAT_REFITS = 0.2
_BATCH = 512


@dataclass(frozen=True, slots=True)
class Progress:
    """`percent` of the whole build. At the stage `tokens` a first index without embeddings can be searched."""

    stage: Stage
    percent: int


@dataclass(frozen=True, slots=True)
class Built:
    index: Index
    problems: tuple[str, ...]


def build_index(
    library: Library,
    folder: Path,
    embedder: str | None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    devices: Sequence[str] = (),
    afresh: bool = False,
) -> Built:
    """Bring the index in `folder` up to date with `library`; `embedder` None leaves embeddings out, `afresh` reuses
    nothing of what is there.

    The old index stays usable until the new one is whole. Raises `OSError` where the folder cannot be written,
    `ImportError` where the embedder's packages are missing, `ValueError` where its model cannot be loaded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _only_builder(folder, on_progress):
        previous = None if afresh else _previous(folder, with_embeddings=embedder is not None)
        if previous is not None and previous.features is not None and is_current(previous, library, embedder):
            # Another window has brought it up to date while this one waited.
            on_progress(Progress("done", 100))
            return Built(previous, ())
        corpus = read_corpus(
            library,
            previous.known_files() if previous else None,
            lambda done, total: on_progress(Progress("reading", 45 * done // max(1, total))),
        )
        tokens_only = index_of_corpus(corpus, library)
        if embedder is None:
            tokens_only = _with_features(tokens_only, previous)
            on_disk.write(folder, tokens_only)
            on_progress(Progress("done", 100))
            return Built(tokens_only, corpus.problems)
        if previous is None and not on_disk.exists(folder):
            on_disk.write(folder, tokens_only)
            on_progress(Progress("tokens", 45))
        reusable = _reusable_rows(previous, tokens_only.entries, embedder, folder)
        model, fitted = _embedder(embedder, folder, tokens_only.entries, bool(reusable), devices, on_progress)
        # Each call starts the processes that share the work anew: they get all of it at once.
        batch = _BATCH if len(devices) < 2 else len(tokens_only.entries)
        embeddings = _embed(tokens_only.entries, model, reusable, batch, on_progress)
        on_progress(Progress("comparing", 90))
        built = replace(_with_features(tokens_only, previous), embeddings=embeddings, embedder=embedder)
        on_progress(Progress("writing", 98))
        on_disk.write(folder, built, fitted)
        on_progress(Progress("done", 100))
        return Built(built, corpus.problems)


def is_current(index: Index, library: Library, embedder: str | None) -> bool:
    """Whether `index` is of this embedder and of the library's files as they are now."""
    from twinlens.similarity.corpus import digest_of, library_files

    if index.embedder != embedder:
        return False
    return dict(index.digests) == {file.relative: digest_of(file.path) for file in library_files(library)}


@contextmanager
def _only_builder(folder: Path, on_progress: Callable[[Progress], None]) -> Generator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_progress(Progress("waiting", 0))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _previous(folder: Path, with_embeddings: bool) -> Index | None:
    try:
        previous = on_disk.load(folder, with_embeddings)
    except (IndexDamagedError, FileNotFoundError):
        return None
    return previous if previous.digests else None


def _with_features(index: Index, previous: Index | None) -> Index:
    """With what a ranking compares, where numpy is there to compare it."""
    if find_spec("numpy") is None:
        return index
    from twinlens.similarity.feature_table import table_of

    sources = {entry.sameness: entry.sanitised for entry in index.entries}
    return replace(index, features=table_of(sources, previous.features if previous else None))


def _reusable_rows(
    previous: Index | None, entries: Sequence[Entry], embedder: str, folder: Path
) -> dict[str, np.ndarray]:
    """Sanitised source to its row, for what the previous index already embedded; empty where a refit is due."""
    if previous is None or previous.embeddings is None or previous.embedder != embedder:
        return {}
    rows = {entry.sanitised: row for entry, row in zip(previous.entries, previous.embeddings, strict=True)}
    changed = sum(entry.sanitised not in rows for entry in entries)
    if embedder == DEFAULT and (
        changed > _SHARE_CHANGED_THAT_REFITS * len(entries) or not (folder / on_disk.EMBEDDER).is_dir()
    ):
        return {}
    return rows


def _embedder(
    name: str,
    folder: Path,
    entries: Sequence[Entry],
    reuse: bool,
    devices: Sequence[str],
    on_progress: Callable[[Progress], None],
) -> tuple[Embedder, LibraryEmbedder | None]:
    """The embedder, and the one to write beside the index where it was fitted just now."""
    from twinlens.similarity.embedder import LibraryEmbedder, SentenceTransformerEmbedder

    if name != DEFAULT:
        return SentenceTransformerEmbedder(name, devices), None
    if reuse:
        return LibraryEmbedder.load(folder / on_disk.EMBEDDER), None
    on_progress(Progress("fitting", 46))
    fitted = LibraryEmbedder.fit(list(dict.fromkeys(entry.sanitised for entry in entries)))
    return fitted, fitted


def _embed(
    entries: Sequence[Entry],
    model: Embedder,
    reusable: dict[str, np.ndarray],
    batch_size: int,
    on_progress: Callable[[Progress], None],
) -> np.ndarray:
    import numpy as np

    rows = dict(reusable)
    fresh = [text for text in dict.fromkeys(entry.sanitised for entry in entries) if text not in rows]
    # Texts of like length together: a transformer pads a batch to its longest.
    fresh.sort(key=len)
    for start in range(0, len(fresh), max(1, batch_size)):
        on_progress(Progress("encoding", 75 + 14 * start // len(fresh)))
        batch = fresh[start : start + batch_size]
        rows.update(zip(batch, model.encode(batch), strict=True))
    if not entries:
        return np.zeros((0, 1), dtype=np.float32)
    return np.stack([rows[entry.sanitised] for entry in entries])
