"""Releases of transformers as libraries: their wheels from pip, their indices, and what new models inherit from."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from platformdirs import user_cache_path
from twinlens.similarity.answers import QueryDefinition, QueryFile
from twinlens.similarity.build import build_index, is_current
from twinlens.similarity.contents import IndexDamagedError
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.index import exists, load
from twinlens.similarity.indexed import Index
from twinlens.source.library import Library
from twinlens.source.lineage import Lineage, trace_lineage
from twinlens.source.ties import is_modular

CACHE = user_cache_path("twinlens-benchmarks")


def library_of(release: str) -> Library:
    """The models folder of a release's wheel, fetched with pip once."""
    folder = CACHE / f"transformers-{release}"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE)]
        subprocess.run([*command, f"transformers=={release}"], check=True)
        part = folder.with_name(folder.name + ".part")
        (wheel,) = CACHE.glob(f"transformers-{release}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(part, [name for name in archive.namelist() if name.startswith("transformers/models/")])
        part.rename(folder)
        wheel.unlink()
    return Library((folder / "transformers/models",), "folder", release)


def index_of(release: str, embedder: str = DEFAULT) -> tuple[Index, Path]:
    """The index of a release, and the folder in which it is kept."""
    library = library_of(release)
    folder = CACHE / f"index-{release}-{Path(embedder).name}"
    if exists(folder):
        try:
            found = load(folder)
        except IndexDamagedError:
            found = None
        if found is not None and is_current(found, library, embedder):
            return found, folder
    print(f"indexing {library.label} …", file=sys.stderr)
    return build_index(library, folder, embedder).index, folder


def lineage_of(index: Index) -> Lineage:
    return trace_lineage({entry.identifier: entry.sameness for entry in index.entries}, index.ties)


def modular_parents(index: Index) -> Mapping[str, tuple[str, ...]]:
    """Class → the classes of other models that it inherits from in its modular file."""
    said = {file: ties if is_modular(file) else replace(ties, ties=()) for file, ties in index.ties.items()}
    modular = {
        file: replace(ties, ties=tuple(tie for tie in ties.ties if tie.kind == "inherits"))
        for file, ties in said.items()
    }
    lineage = trace_lineage({entry.identifier: entry.sameness for entry in index.entries}, modular)
    models = {entry.identifier: entry.model for entry in index.entries}
    classes = {entry.identifier for entry in index.entries if entry.kind == "class"}
    return {
        child: kept
        for child, parents in lineage.parents.items()
        if child in classes and (kept := tuple(parent for parent in parents if models[parent] != models[child]))
    }


def queries_of(index: Index) -> Mapping[str, QueryFile]:
    """Each modeling file as a question."""
    files: dict[str, list[QueryDefinition]] = defaultdict(list)
    models: dict[str, str] = {}
    for entry in index.entries:
        models[entry.relative] = entry.model
        files[entry.relative].append(
            QueryDefinition(entry.name, entry.kind, entry.line, entry.bases, entry.methods, entry.sanitised)
        )
    return {file: QueryFile(models[file], tuple(definitions)) for file, definitions in files.items()}
