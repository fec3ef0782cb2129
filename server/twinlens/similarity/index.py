"""The index on disk: its files (see `contents`), a manifest, and the fitted embedder in `embedder/`.

`manifest.json` holds the format, the embedder's name, the library, a hash for each library file and a hash for each
data file, so that a torn or cut index is noticed.

A new state is written whole into `.next/`, which is then renamed `.commit/`: from then on it counts, and whoever opens
the folder next moves its files into place. A crash before leaves the old state, a crash after the new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlens.similarity.contents import (
    INDEX_MAP,
    IndexDamagedError,
    damaged,
    read_contents,
    read_json,
    unread,
    write_contents,
    write_json,
)
from twinlens.similarity.indexed import Index

if TYPE_CHECKING:
    from twinlens.similarity.embedder import LibraryEmbedder

FORMAT = 3
MANIFEST = "manifest.json"
EMBEDDER = "embedder"

_NEXT, _COMMIT = ".next", ".commit"
_TRIES = 3


def exists(folder: Path) -> bool:
    return (folder / _COMMIT).is_dir() or (folder / INDEX_MAP).is_file()


def load(folder: Path, with_embeddings: bool = True) -> Index:
    """Read the index in `folder`. Without embeddings it needs the standard library alone.

    Raises `IndexDamagedError` where a file is missing, cut or not of this index, `FileNotFoundError` where there is
    no index at all.
    """
    for attempt in range(_TRIES):
        _finish_commit(folder)
        if not exists(folder):
            raise FileNotFoundError(f"there is no index in {folder}")
        before = _read_manifest(folder)
        try:
            return _load_once(folder, before, with_embeddings)
        except IndexDamagedError:
            # A build may have moved its files in between the reads; then the manifest has changed.
            if attempt == _TRIES - 1 or ((folder / _COMMIT).is_dir() is False and _read_manifest(folder) == before):
                raise
    raise AssertionError("unreachable")


def write(folder: Path, index: Index, embedder: LibraryEmbedder | None = None) -> None:
    """Write `index` so that at every moment the folder holds either the old state or the new one whole.

    `embedder` is the fitted embedder to keep beside it; None leaves the one that is there. Raises `OSError` where the
    folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _finish_commit(folder)
    following = folder / _NEXT
    shutil.rmtree(following, ignore_errors=True)
    following.mkdir()
    write_contents(following, index)
    data = {path.name: _digest(path) for path in sorted(following.iterdir())}
    if embedder is not None:
        embedder.save(following / EMBEDDER)
    manifest = {
        "format": FORMAT,
        "embedder": index.embedder,
        "library": index.label,
        "files": dict(index.digests),
        "data": data,
    }
    write_json(following / MANIFEST, manifest)
    for path in following.rglob("*"):
        if path.is_file():
            with path.open("rb+") as stream:
                os.fsync(stream.fileno())
    following.rename(folder / _COMMIT)
    _finish_commit(folder)


def _finish_commit(folder: Path) -> None:
    """Move a committed state into place, the manifest last; two processes may do it at once."""
    commit = folder / _COMMIT
    if not commit.is_dir():
        return
    names = sorted((path.name for path in commit.iterdir()), key=lambda name: name == MANIFEST)
    for name in names:
        target = folder / name
        if (commit / name).is_dir():
            shutil.rmtree(target, ignore_errors=True)
        try:
            (commit / name).replace(target)
        except FileNotFoundError:
            continue  # the other process has moved it
    shutil.rmtree(commit, ignore_errors=True)


def _load_once(folder: Path, manifest: dict[str, Any], with_embeddings: bool) -> Index:
    left = unread(with_embeddings)
    for name, digest in manifest.get("data", {}).items():
        if name not in left and _digest(folder / name) != digest:
            raise damaged(folder / name, "is cut short or not of this index")
    return read_contents(folder, manifest, with_embeddings)


def _read_manifest(folder: Path) -> dict[str, Any]:
    """An index that upstream's tool wrote has none: then the empty dict."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    manifest = read_json(path, dict)
    if manifest.get("format") != FORMAT:
        raise damaged(path, f"is of format {manifest.get('format')!r}, this Twinlens reads format {FORMAT}")
    return manifest


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()
