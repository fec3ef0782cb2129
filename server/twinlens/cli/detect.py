"""`twinlens detect`: which library definitions resemble those of a modeling file."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinlens.cli.errors import UserError
from twinlens.cli.library import library_near
from twinlens.cli.output import write
from twinlens.cli.progress import build_progress

if TYPE_CHECKING:
    from twinlens.similarity.answers import Answer, QueryFile
    from twinlens.similarity.indexed import Index
    from twinlens.similarity.search import Searcher
    from twinlens.source.library import Library

_IN_A_SUMMARY = 10
_MODELS_LISTED = 5


def detect(
    modeling_file: Annotated[
        list[Path] | None,
        typer.Option("--modeling-file", help="A modeling file, or a folder: every modeling file in it. Repeatable."),
    ] = None,
    library: Annotated[
        list[Path] | None, typer.Option("--library", help="A folder of models to search. Repeatable.")
    ] = None,
    index: Annotated[Path | None, typer.Option("--index", help="The folder of the index.")] = None,
    build: Annotated[bool, typer.Option("--build", help="Build the index anew.")] = False,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="How many matches to name for each score.")] = 5,
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", help="A sentence-transformers model by name or folder, in place of the fitted one."),
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="Write the matches as JSON as well; - for stdout.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before", metavar="YYYY-MM-DD", help="Leave out models known to be newer; those of unknown date stay."
        ),
    ] = None,
    hub_dataset: Annotated[
        str | None, typer.Option("--hub-dataset", metavar="ORG/NAME", help="Pull the index from this dataset first.")
    ] = None,
    push_new_index: Annotated[
        bool, typer.Option("--push-new-index", help="Upload the index to --hub-dataset in place of pulling it.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option("--devices", help="Where to embed: cuda:0,cuda:1 or cpu,cpu shares the work among them."),
    ] = None,
) -> None:
    """Name the library definitions that resemble those of a modeling file, by embedding and by shared identifiers."""
    if not (modeling_file or build or hub_dataset or push_new_index):
        raise UserError("name a file with --modeling-file, or use --build to build the index")
    limit = _date(before)
    files = _modeling_files(modeling_file or [])
    searched = _library(files, library or [])
    queries = _queries(files, modeling_file or [], searched)
    files = [path for path, _query in queries]
    for path, query in queries:
        if not query.definitions:
            sys.stderr.write(f"{path} holds no class and no function to compare\n")
    folder = _index_folder(searched, index, embedder)
    with _sentences(folder, embedder):
        if hub_dataset and not push_new_index:
            _pull(hub_dataset, folder)
        devices = tuple(filter(None, (device or "").split(",")))
        found = _current_index(searched, folder, embedder, build, devices)
        if push_new_index:
            _push(hub_dataset, folder)
        if not files:
            return
        searcher = _searcher(searched, folder, found)
    if limit is not None:
        _tell_undated(found, limit)
    results = {
        f"{_short_name(path, files)}::{definition.name}": answer
        for path, query in queries
        for definition, answer in zip(query.definitions, _answers(searcher, query, top_k, limit), strict=True)
    }
    if json_file == "-":
        sys.stdout.write(_as_json(results))
        return
    for title, answer in results.items():
        sys.stdout.write(_block(title, answer))
    for path in files:
        sys.stdout.write(_summary(_short_name(path, files), results))
    if json_file is not None:
        write(Path(json_file), _as_json(results))


def _modeling_files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("modeling_*.py")) if path.is_dir() else [path]
        if not inside:
            raise UserError(f"{path} holds no modeling_*.py file")
        files += inside
    return list(dict.fromkeys(files))


def _short_name(path: Path, files: Sequence[Path]) -> str:
    alone = sum(other.name == path.name for other in files) == 1
    return path.name if alone else path.as_posix()


def _queries(files: Sequence[Path], named: Sequence[Path], library: Library) -> list[tuple[Path, QueryFile]]:
    """What each file asks; one of a folder that cannot be read is told of and left out, if there are others."""
    found: list[tuple[Path, QueryFile]] = []
    unread: list[UserError] = []
    for path in files:
        try:
            found.append((path, _query(path, library)))
        except UserError as error:
            if path in named:
                raise
            unread.append(error)
    if unread and not found:
        raise unread[0]
    for error in unread:
        sys.stderr.write(f"{error}\n")
    return found


def _query(path: Path, library: Library) -> QueryFile:
    from twinlens.similarity.answers import query_file
    from twinlens.source.definitions import read_source
    from twinlens.source.library import model_of_file

    if path.suffix == ".ipynb":
        raise UserError(f"{path} is a notebook; export its code first: jupyter nbconvert --to script {path}")
    if path.is_file() and path.suffix != ".py":
        raise UserError(f"{path} is no Python file; name a modeling file, or a folder of them")
    try:
        return query_file(read_source(path), path, model_of_file(path.resolve(), library))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        place = f" at line {error.lineno}" if error.lineno else ""
        raise UserError(f"{path} does not parse{place}: {error.msg}") from error


def _library(near: Sequence[Path], folders: Sequence[Path]) -> Library:
    found = library_near(near, folders)
    if found is None:
        raise UserError(
            "no library to search: install transformers, run in a checkout of it, or name it with --library"
        )
    return found


def _index_folder(library: Library, folder: Path | None, embedder: str | None) -> Path:
    from platformdirs import user_cache_path

    from twinlens.similarity.embedder_names import DEFAULT
    from twinlens.similarity.programs import index_folder

    return folder or index_folder(user_cache_path("twinlens"), library, embedder or DEFAULT)


@contextmanager
def _sentences(folder: Path, embedder: str | None) -> Generator[None]:
    """What can go wrong with an index, each as one sentence."""
    from twinlens.similarity.contents import IndexDamagedError
    from twinlens.similarity.hub import HubError

    try:
        yield
    except (IndexDamagedError, HubError, ValueError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        where = error.filename or folder
        raise UserError(f"{where}: {error.strerror or error}; name another folder with --index") from error
    except ImportError as error:
        missing = (error.name or "sentence_transformers").partition(".")[0].replace("_", "-")
        what = f"the embedder {embedder}" if embedder else "this index"
        raise UserError(f"{what} needs {missing}: pip install {missing}") from error


def _searcher(library: Library, folder: Path, found: Index) -> Searcher:
    from twinlens.similarity.embedder import open_embedder
    from twinlens.similarity.search import Searcher

    return Searcher(found, library.roots, open_embedder(found.embedder, folder))


def _pull(dataset: str, folder: Path) -> None:
    from twinlens.similarity.hub import pull

    pulled = pull(dataset, folder)
    sys.stderr.write(f"{len(pulled.entries):,} definitions were pulled from {dataset} into {folder}\n")


def _push(dataset: str | None, folder: Path) -> None:
    from twinlens.similarity.hub import DEFAULT_DATASET, push

    push(dataset or DEFAULT_DATASET, folder)
    sys.stderr.write(f"the index in {folder} was pushed to {dataset or DEFAULT_DATASET}\n")


def _current_index(library: Library, folder: Path, embedder: str | None, afresh: bool, devices: Sequence[str]) -> Index:
    """The index in `folder`, built or brought up to date first; one that was published without hashes as it is."""
    from twinlens.similarity import index as on_disk
    from twinlens.similarity.build import build_index, is_current
    from twinlens.similarity.embedder_names import DEFAULT

    name = embedder or DEFAULT
    if not afresh and on_disk.exists(folder):
        found = on_disk.load(folder)
        if not found.digests or is_current(found, library, name):
            return found
    with build_progress() as on_progress:
        built = build_index(library, folder, name, on_progress, devices, afresh)
    for problem in built.problems:
        sys.stderr.write(f"{problem}\n")
    sys.stderr.write(f"{len(built.index.entries):,} definitions of {library.label} are in {folder}\n")
    return built.index


def _answers(searcher: Searcher, query: QueryFile, top_k: int, before: date | None) -> list[Answer]:
    return searcher.answers(query, [definition.name for definition in query.definitions], top_k, before)


def _tell_undated(index: Index, limit: date) -> None:
    dated = index.release_dates()
    undated = sorted({entry.model for entry in index.entries if entry.model not in dated})
    if undated:
        one = len(undated) == 1
        which = f"{len(undated)} {'model' if one else 'models'} whose date is unknown {'was' if one else 'were'} kept"
        sys.stderr.write(f"--before {limit}: {which}: {_first(undated)}\n")


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text is not None else None
    except ValueError as error:
        raise UserError(f"--before {text} is no date; write it as in 2025-01-31") from error


def _block(title: str, answer: Answer) -> str:
    lines = [f"{title}:", "  embedding:"]
    lines += [f"    {match.identity} ({match.embedding:.4f})" for match in answer.embedding]
    lines += ["  jaccard:", *(f"    {match.identity} ({match.jaccard:.4f})" for match in answer.jaccard)]
    lines += ["  intersection:", *(f"    {identity}" for identity in answer.intersection), "", ""]
    return "\n".join(lines)


def _summary(file: str, results: Mapping[str, Answer]) -> str:
    """The models that cover most of the file, at the end of its report."""
    from twinlens.similarity.summary import summarise

    own = {title.rpartition("::")[2]: answer for title, answer in results.items() if title.startswith(f"{file}::")}
    if not own:
        return ""
    lines = [f"{file}, by model:"]
    for covered in summarise(own)[:_IN_A_SUMMARY]:
        count = f"{len(covered.definitions)} of {len(own)}"
        also = f", as do {_first(covered.also)} for some of these" if covered.also else ""
        lines.append(f"  {covered.model} covers {count} with a mean score of {covered.score:.2f}{also}")
        lines.append(f"    {', '.join(covered.definitions)}")
    if len(lines) == 1:
        lines.append("  no model of the library resembles it")
    return "\n".join([*lines, "", ""])


def _first(models: Sequence[str]) -> str:
    left = len(models) - _MODELS_LISTED
    return ", ".join(models[:_MODELS_LISTED]) + (f" and {left} more" if left > 0 else "")


def _as_json(results: Mapping[str, Answer]) -> str:
    return json.dumps({title: _answer_as_json(answer) for title, answer in results.items()}, indent=2) + "\n"


def _answer_as_json(answer: Answer) -> dict[str, Any]:
    return {
        "embedding": [[match.identity, match.embedding] for match in answer.embedding],
        "jaccard": [[match.identity, match.jaccard] for match in answer.jaccard],
        "intersection": list(answer.intersection),
        "ranked": [
            {
                "match": ranked.match.identity,
                "score": ranked.score,
                "embedding": ranked.match.embedding,
                "jaccard": ranked.match.jaccard,
                "twins": list(ranked.twins),
                "ancestors": list(ranked.ancestors),
            }
            for ranked in answer.ranked
        ],
    }
