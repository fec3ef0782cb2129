"""The index on disk: upstream's three files, and two of our own.

`embeddings.safetensors` (key `embeddings`, float32, n × d, rows of unit length), `code_index_map.json` (row →
`model/file.py:Name`) and `code_index_tokens.json` (identifier → sorted tokens) are those of transformers'
`utils/modular_model_detector.py`. `definitions.json` keeps what a rebuild need not read again, `embedder/` the fitted
embedder, and `manifest.json` the format, the embedder's name, the library, a hash for each library file and a hash for
each data file, so that a torn or cut index is noticed.

A new state is written whole into `.next/`, which is then renamed `.commit/`: from then on it counts, and whoever opens
the folder next moves its files into place. A crash before leaves the old state, a crash after the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlens.similarity.corpus import Corpus, Entry, FileEntries
from twinlens.source.library import Library

if TYPE_CHECKING:
    import numpy as np

    from twinlens.similarity.embedder import LibraryEmbedder

FORMAT = 1
EMBEDDINGS = "embeddings.safetensors"
INDEX_MAP = "code_index_map.json"
TOKENS = "code_index_tokens.json"
DEFINITIONS = "definitions.json"
MANIFEST = "manifest.json"
EMBEDDER = "embedder"

_NEXT, _COMMIT = ".next", ".commit"
_TRIES = 3


class IndexDamagedError(Exception):
    """The folder holds no whole index: the text is one sentence that names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index in memory. `embeddings` is float32 (n, d) with rows of unit length, or None; `tokens` and `entries`
    have n items. `digests` maps each library file to its content's hash.
    """

    entries: tuple[Entry, ...]
    tokens: tuple[frozenset[str], ...]
    embeddings: np.ndarray | None = None
    embedder: str | None = None
    label: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)

    def known_files(self) -> dict[str, FileEntries]:
        """What a rebuild need not parse again; nothing for an index without `definitions.json`."""
        by_file: dict[str, list[Entry]] = {relative: [] for relative in self.digests}
        for entry in self.entries:
            by_file.setdefault(entry.relative, []).append(entry)
        return {
            relative: FileEntries(relative, digest, tuple(by_file[relative]))
            for relative, digest in self.digests.items()
        }


def exists(folder: Path) -> bool:
    return (folder / _COMMIT).is_dir() or (folder / INDEX_MAP).is_file()


def index_of_corpus(corpus: Corpus, library: Library) -> Index:
    entries = corpus.entries
    return Index(
        entries,
        tuple(entry.tokens() for entry in entries),
        label=library.label,
        digests={file.relative: file.digest for file in corpus.files if not file.problem},
    )


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
    identifiers = [entry.identifier for entry in index.entries]
    _write_json(following / INDEX_MAP, dict(enumerate(identifiers)))
    _write_json(following / TOKENS, dict(zip(identifiers, map(sorted, index.tokens), strict=True)))
    _write_json(following / DEFINITIONS, [_entry_to_json(entry) for entry in index.entries])
    if index.embeddings is not None:
        from safetensors.numpy import save_file

        save_file({"embeddings": index.embeddings}, following / EMBEDDINGS)
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
    _write_json(following / MANIFEST, manifest)
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
    for name, digest in manifest.get("data", {}).items():
        if (name != EMBEDDINGS or with_embeddings) and _digest(folder / name) != digest:
            raise _damaged(folder / name, "is cut short or not of this index")
    identifiers = list(_read_json(folder / INDEX_MAP, dict).values())
    token_lists = _read_json(folder / TOKENS, dict)
    if set(token_lists) != set(identifiers):
        raise _damaged(folder / TOKENS, f"does not list the definitions of {INDEX_MAP}")
    entries = _read_entries(folder, identifiers) if manifest else tuple(map(_bare_entry, identifiers))
    embeddings = _read_embeddings(folder, len(identifiers)) if with_embeddings else None
    return Index(
        entries,
        tuple(frozenset(token_lists[identifier]) for identifier in identifiers),
        embeddings,
        manifest.get("embedder") if manifest else None,
        manifest.get("library", ""),
        manifest.get("files", {}),
    )


def _read_manifest(folder: Path) -> dict[str, Any]:
    """An index that upstream's tool wrote has none: then the empty dict."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    manifest = _read_json(path, dict)
    if manifest.get("format") != FORMAT:
        raise _damaged(path, f"is of format {manifest.get('format')!r}, this Twinlens reads format {FORMAT}")
    return manifest


def _read_entries(folder: Path, identifiers: list[str]) -> tuple[Entry, ...]:
    raw = _read_json(folder / DEFINITIONS, list)
    try:
        entries = tuple(_entry_from_json(item) for item in raw)
    except (KeyError, TypeError) as error:
        raise _damaged(folder / DEFINITIONS, f"lacks a field: {error}") from error
    if [entry.identifier for entry in entries] != identifiers:
        raise _damaged(folder / DEFINITIONS, f"does not list the definitions of {INDEX_MAP}")
    return entries


def _read_embeddings(folder: Path, rows: int) -> np.ndarray | None:
    path = folder / EMBEDDINGS
    if not path.exists():
        return None
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        embeddings = load_file(path)["embeddings"]
    except (SafetensorError, KeyError) as error:
        raise _damaged(path, f"is cut short or no embedding file: {error}") from error
    if embeddings.ndim != 2 or len(embeddings) != rows:
        raise _damaged(path, f"has shape {embeddings.shape}, the index lists {rows} definitions")
    return embeddings.astype("float32", copy=False)


def _bare_entry(identifier: str) -> Entry:
    relative, _, name = identifier.partition(":")
    return Entry(relative, relative.split("/")[0], name, "class" if name[:1].isupper() else "function", 1, (), (), "")


def _entry_to_json(entry: Entry) -> list[Any]:
    return [
        entry.relative, entry.model, entry.name, entry.kind, entry.line, entry.bases, entry.methods, entry.sanitised
    ]  # fmt: skip


def _entry_from_json(item: list[Any]) -> Entry:
    relative, model, name, kind, line, bases, methods, sanitised = item
    return Entry(relative, model, name, kind, line, tuple(bases), tuple(methods), sanitised)


def _read_json(path: Path, kind: type) -> Any:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _damaged(path, "is missing") from error
    except ValueError as error:
        raise _damaged(path, f"is cut short or no JSON ({error})") from error
    if not isinstance(value, kind):
        raise _damaged(path, "does not hold what an index holds")
    return value


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()


def _damaged(path: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(f"The index file {path} {what}; rebuild the index (`twinlens detect --build`).")
