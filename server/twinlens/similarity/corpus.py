"""The library's definitions, sanitised, as an index holds them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from twinlens.similarity.answers import QueryDefinition, query_of_definitions
from twinlens.source.dates import copyright_date
from twinlens.source.definitions import Kind, definitions_of, parse, read_source
from twinlens.source.layout import logical_lines, sameness
from twinlens.source.library import Library, ModelingFile, file_at, file_stem, modeling_files, modular_files
from twinlens.source.sanitise import identifier_tokens
from twinlens.source.ties import NO_TIES, FileTies, is_modular, ties_of

_FILES_A_TASK = 12
_FILES_WORTH_A_POOL = 48


@dataclass(frozen=True, slots=True)
class Entry:
    """One definition of the library. `relative` is its file below the library's root; `line` counts from 1.

    `sameness` is equal for equal sanitised source; of an entry whose source is unknown it is its identifier.
    """

    relative: str
    model: str
    name: str
    kind: Kind
    line: int
    bases: tuple[str, ...]
    methods: tuple[str, ...]
    sanitised: str
    sameness: str

    @property
    def identifier(self) -> str:
        """`model/file.py:Name`, as in `code_index_map.json`."""
        return f"{self.relative}:{self.name}"

    @property
    def identity(self) -> str:
        return f"{self.model}::{self.name}"

    def tokens(self) -> frozenset[str]:
        return identifier_tokens(self.sanitised)


@dataclass(frozen=True, slots=True)
class FileEntries:
    """What one file holds: its content's hash, its entries, none for a modular file, and what it says about where its
    definitions come from; or the sentence that says why it could not be read.

    `date`, in ISO 8601, is the earliest day on which the model can have been written, where the file tells it.
    """

    relative: str
    digest: str
    entries: tuple[Entry, ...]
    ties: FileTies = NO_TIES
    date: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    files: tuple[FileEntries, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for file in self.files for entry in file.entries)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(file.problem for file in self.files if file.problem)


def read_corpus(
    library: Library,
    known: Mapping[str, FileEntries] | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Corpus:
    """Read every modeling and modular file of `library`; one whose hash is in `known` (by relative path) is not parsed
    again.

    A file that cannot be read or does not parse is kept as a problem with what was known of it, and the rest goes on.
    """
    known = known or {}
    files = library_files(library)
    read: dict[str, FileEntries] = {}
    changed: list[ModelingFile] = []
    for file in files:
        before = known.get(file.relative)
        if before is not None and before.digest == digest_of(file.path):
            read[file.relative] = before
        else:
            changed.append(file)
    on_progress(len(read), len(files))
    for entries in _read_all(changed):
        read[entries.relative] = _with_known(entries, known.get(entries.relative))
        on_progress(len(read), len(files))
    return Corpus(tuple(read[file.relative] for file in files))


def library_files(library: Library) -> tuple[ModelingFile, ...]:
    """The files that an index is made of."""
    return (*modeling_files(library), *modular_files(library))


def changed_files(library: Library, known: Mapping[str, str], paths: Iterable[Path]) -> Iterator[FileEntries]:
    """Of `paths`, those of the library whose content is not that of their hash in `known` (by relative path), as they
    are now; one that is gone holds nothing, and one that does not parse is passed over. A folder stands for the files
    that lie below it and those of `known` that lay there.
    """
    each = (file for path in paths for file in ([path] if path.suffix == ".py" else _below(library, known, path)))
    for path in dict.fromkeys(each):
        file = file_at(library, path)
        if file is None:
            continue
        if not file.path.is_file():
            if known.get(file.relative):
                yield FileEntries(file.relative, "", ())
        elif digest_of(file.path) != known.get(file.relative):
            found = read_file_entries(file)
            if not found.problem:
                yield found


def _below(library: Library, known: Mapping[str, str], folder: Path) -> Iterator[Path]:
    for root in library.roots:
        # Of a folder outside of the library, as `node_modules` may be, nothing is walked.
        if root.is_relative_to(folder) or folder.is_relative_to(root):
            yield from max(root, folder, key=lambda path: len(path.parts)).rglob("*.py")
            yield from (path for relative in known if (path := root / relative).is_relative_to(folder))


def digest_of(path: Path) -> str:
    """A hash of the file's bytes; of an unreadable file the empty string."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


def read_file_entries(file: ModelingFile) -> FileEntries:
    digest = digest_of(file.path)
    try:
        text = read_source(file.path)
        tree, lines = parse(text), text.split("\n")
        ties = ties_of(tree, lines, file.relative)
        definitions = () if is_modular(file.relative) else definitions_of(tree, lines)
    except (OSError, SyntaxError) as error:
        return FileEntries(file.relative, digest, (), problem=f"{file.path} could not be read: {_reason(error)}")
    query = query_of_definitions(definitions, (file.model, file_stem(file.path)), file.model)
    entries = tuple(_entry(file, found) for found in query.definitions)
    return FileEntries(file.relative, digest, entries, ties, copyright_date(text))


def _reason(error: OSError | SyntaxError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg


def _with_known(found: FileEntries, before: FileEntries | None) -> FileEntries:
    if found.problem is None or before is None:
        return found
    return replace(before, digest=found.digest, problem=found.problem)


def _entry(file: ModelingFile, found: QueryDefinition) -> Entry:
    return Entry(
        file.relative,
        file.model,
        found.name,
        found.kind,
        found.line,
        found.bases,
        found.methods,
        found.sanitised,
        sameness(logical_lines(found.sanitised)),
    )


def _read_several(files: Sequence[ModelingFile]) -> list[FileEntries]:
    return [read_file_entries(file) for file in files]


def _read_all(files: Sequence[ModelingFile]) -> Iterator[FileEntries]:
    workers = min(os.cpu_count() or 1, 8)
    if len(files) < _FILES_WORTH_A_POOL or workers == 1:
        yield from map(read_file_entries, files)
        return
    tasks = [files[start : start + _FILES_A_TASK] for start in range(0, len(files), _FILES_A_TASK)]
    with ProcessPoolExecutor(workers) as pool:
        for entries in pool.map(_read_several, tasks):
            yield from entries
