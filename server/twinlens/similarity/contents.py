"""What stands in each file of an index, written and read.

`embeddings.safetensors` (key `embeddings`, float32, n × d, rows of unit length), `code_index_map.json` (row →
`model/file.py:Name`) and `code_index_tokens.json` (identifier → sorted tokens) are those of transformers'
`utils/modular_model_detector.py`. Ours are `definitions.json`, what a rebuild need not read again, `lineage.json`, what
each file says of where its definitions come from and when, and `features.safetensors`, what a ranking compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlens.similarity.corpus import Entry
from twinlens.similarity.indexed import Index
from twinlens.source.ties import FileTies, Reference, Tie

if TYPE_CHECKING:
    import numpy as np

    from twinlens.similarity.feature_table import FeatureTable

EMBEDDINGS = "embeddings.safetensors"
INDEX_MAP = "code_index_map.json"
TOKENS = "code_index_tokens.json"
DEFINITIONS = "definitions.json"
LINEAGE = "lineage.json"
FEATURES = "features.safetensors"


class IndexDamagedError(Exception):
    """The folder holds no whole index: the text is one sentence that names the file and the remedy."""


def write_contents(folder: Path, index: Index) -> None:
    """Write every file of `index` but its manifest."""
    identifiers = [entry.identifier for entry in index.entries]
    write_json(folder / INDEX_MAP, dict(enumerate(identifiers)))
    write_json(folder / TOKENS, dict(zip(identifiers, map(sorted, index.tokens), strict=True)))
    write_json(folder / DEFINITIONS, [_entry_to_json(entry) for entry in index.entries])
    write_json(folder / LINEAGE, _lineage_to_json(index))
    if index.features is not None:
        _write_features(folder / FEATURES, index.features)
    if index.embeddings is not None:
        from safetensors.numpy import save_file

        save_file({"embeddings": index.embeddings}, folder / EMBEDDINGS)


def unread(with_embeddings: bool) -> frozenset[str]:
    """The files that `read_contents` leaves alone, because they are not wanted or cannot be read here."""
    left = set() if with_embeddings else {EMBEDDINGS}
    return frozenset(left if find_spec("numpy") and find_spec("safetensors") else {EMBEDDINGS, FEATURES})


def read_contents(folder: Path, manifest: Mapping[str, Any], with_embeddings: bool) -> Index:
    """The index in `folder`; `manifest` is empty for one that upstream's tool wrote. Raises `IndexDamagedError`."""
    left = unread(with_embeddings)
    identifiers = list(read_json(folder / INDEX_MAP, dict).values())
    token_lists = read_json(folder / TOKENS, dict)
    if set(token_lists) != set(identifiers):
        raise damaged(folder / TOKENS, f"does not list the definitions of {INDEX_MAP}")
    entries = _read_entries(folder, identifiers) if manifest else tuple(map(_bare_entry, identifiers))
    return Index(
        entries,
        tuple(frozenset(token_lists[identifier]) for identifier in identifiers),
        None if EMBEDDINGS in left else _read_embeddings(folder, len(identifiers)),
        manifest.get("embedder"),
        manifest.get("library", ""),
        manifest.get("files", {}),
        *(_read_lineage(folder / LINEAGE) if manifest else ()),
        features=None if FEATURES in left or not manifest else _read_features(folder / FEATURES),
    )


def _read_entries(folder: Path, identifiers: list[str]) -> tuple[Entry, ...]:
    raw = read_json(folder / DEFINITIONS, list)
    try:
        entries = tuple(_entry_from_json(item) for item in raw)
    except (KeyError, TypeError) as error:
        raise damaged(folder / DEFINITIONS, f"lacks a field: {error}") from error
    if [entry.identifier for entry in entries] != identifiers:
        raise damaged(folder / DEFINITIONS, f"does not list the definitions of {INDEX_MAP}")
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
        raise damaged(path, f"is cut short or no embedding file: {error}") from error
    if embeddings.ndim != 2 or len(embeddings) != rows:
        raise damaged(path, f"has shape {embeddings.shape}, the index lists {rows} definitions")
    return embeddings.astype("float32", copy=False)


def _write_features(path: Path, table: FeatureTable) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    arrays = {"keys": np.array([int(key, 16) for key in table.keys], dtype=np.uint64), "lengths": table.lengths}
    for name, postings in table.sets.items():
        arrays |= {f"{name}.keys": postings.keys, f"{name}.rows": postings.rows, f"{name}.sizes": postings.sizes}
    save_file(arrays, path)


def _read_features(path: Path) -> FeatureTable | None:
    if not path.exists():
        return None
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from twinlens.similarity.feature_table import FeatureTable
    from twinlens.similarity.features import SETS
    from twinlens.similarity.postings import Postings

    try:
        arrays = load_file(path)
        sets = {
            name: Postings(arrays[f"{name}.keys"], arrays[f"{name}.rows"], arrays[f"{name}.sizes"]) for name in SETS
        }
        return FeatureTable(tuple(f"{key:016x}" for key in arrays["keys"].tolist()), sets, arrays["lengths"])
    except (SafetensorError, KeyError) as error:
        raise damaged(path, f"is cut short or no feature file: {error}") from error


def _bare_entry(identifier: str) -> Entry:
    relative, _, name = identifier.partition(":")
    kind = "class" if name[:1].isupper() else "function"
    return Entry(relative, relative.split("/")[0], name, kind, 1, (), (), "", sameness=identifier)


def _entry_to_json(entry: Entry) -> list[Any]:
    return [
        entry.relative, entry.model, entry.name, entry.kind, entry.line, entry.bases, entry.methods, entry.sanitised,
        entry.sameness,
    ]  # fmt: skip


def _entry_from_json(item: list[Any]) -> Entry:
    relative, model, name, kind, line, bases, methods, sanitised, sameness = item
    return Entry(relative, model, name, kind, line, tuple(bases), tuple(methods), sanitised, sameness)


def _lineage_to_json(index: Index) -> dict[str, Any]:
    ties = {
        file: {
            "ties": [[tie.child, tie.parent.module, tie.parent.name, tie.kind] for tie in said.ties],
            "imports": [[local, reference.module, reference.name] for local, reference in said.imports],
        }
        for file, said in index.ties.items()
    }
    return {"files": ties, "dates": dict(index.dates), "released": dict(index.released)}


def _read_lineage(path: Path) -> tuple[Mapping[str, FileTies], Mapping[str, str], Mapping[str, str]]:
    raw = read_json(path, dict)
    try:
        ties = {
            file: FileTies(
                tuple(Tie(child, Reference(module, name), kind) for child, module, name, kind in said["ties"]),
                tuple((local, Reference(module, name)) for local, module, name in said["imports"]),
            )
            for file, said in raw["files"].items()
        }
        return ties, raw["dates"], raw["released"]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, f"lacks a field: {error}") from error


def read_json(path: Path, kind: type) -> Any:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise damaged(path, "is missing") from error
    except ValueError as error:
        raise damaged(path, f"is cut short or no JSON ({error})") from error
    if not isinstance(value, kind):
        raise damaged(path, "does not hold what an index holds")
    return value


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False), encoding="utf-8")


def damaged(path: Path, what: str) -> IndexDamagedError:
    return IndexDamagedError(f"The index file {path} {what}; rebuild the index (`twinlens detect --build`).")
