"""The processes that embed and search, in the interpreter that has what they need.

`python -m twinlens.similarity.worker serve` answers questions on standard input (see `wire`);
`python -m twinlens.similarity.worker build …` brings an index up to date and reports its progress.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from twinlens.similarity import index as on_disk
from twinlens.similarity.build import Progress, build_index, is_current
from twinlens.similarity.contents import IndexDamagedError
from twinlens.similarity.corpus import changed_files, library_files
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.indexed import Index
from twinlens.similarity.lending import borrow
from twinlens.similarity.search import Searcher
from twinlens.similarity.wire import answers_to_json, query_from_json, take_stdout
from twinlens.source.library import Library, find_library

if TYPE_CHECKING:
    from twinlens.similarity.embedder import Embedder

NEEDED_TO_EMBED = ("numpy", "tokenizers", "safetensors", "faiss")
_DISTRIBUTIONS = {"faiss": "faiss-cpu", "sentence_transformers": "sentence-transformers"}


class Worker:
    """Holds the index that the last `open` loaded."""

    def __init__(self) -> None:
        self._searcher: Searcher | None = None
        self._library: Library | None = None

    def probe(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What this interpreter has: the library to search, and the packages that are missing."""
        library = _library(params)
        return {
            "python": sys.executable,
            "library": None if library is None else [list(map(str, library.roots)), library.origin, library.version],
            "missing": missing_packages(params["embedder"]),
        }

    def open(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Load the index in `index`; `current` tells whether it is of the library as it is now."""
        library = _library(params)
        folder = Path(params["index"])
        embedder = None if missing_packages(params["embedder"]) else params["embedder"]
        found = on_disk.load(folder, with_embeddings=embedder is not None)
        model = _embedder_of(found, folder) if found.embeddings is not None else None
        self._searcher, self._library = Searcher(found, library.roots if library else (), model), library
        return {
            "definitions": len(found.entries),
            "embeddings": model is not None,
            "current": library is None or not found.digests or is_current(found, library, embedder),
        }

    def update(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Take in those files of the library that lie at or below `paths` (null: all) and have changed; how many they
        were.
        """
        if self._searcher is None or self._library is None:
            raise IndexDamagedError("No index is loaded yet.")
        known = self._searcher.index.digests
        if not known:
            # An index that upstream published is not of the files that lie here.
            return {"changed": 0, "definitions": self._searcher.definitions}
        if params["paths"] is None:
            there = {file.path for file in library_files(self._library)}
            paths = [*there, *(root / relative for root in self._library.roots[:1] for relative in known)]
        else:
            paths = [Path(path).resolve() for path in params["paths"]]
        changed = list(changed_files(self._library, known, paths))
        self._searcher.update(changed)
        return {"changed": len(changed), "definitions": self._searcher.definitions}

    def search(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self._searcher is None:
            raise IndexDamagedError("No index is loaded yet.")
        return answers_to_json(
            self._searcher.answers(query_from_json(params["query"]), params["names"], params["top_k"])
        )


def inherit(params: Mapping[str, Any]) -> dict[str, Any]:
    """The text of the modular file in which a class inherits from one of the library (see `modular`)."""
    if find_spec("libcst") is None:
        raise ValueError(f"Writing modular files needs libcst: {sys.executable} -m pip install libcst")
    from twinlens.similarity.modular import NotInheritableError, Parent
    from twinlens.similarity.modular import inherit as written
    from twinlens.source.definitions import read_source

    source = read_source(Path(params["parent_path"]))
    parent = Parent(params["parent"], params["parent_model"], params["parent_relative"], source)
    try:
        file = written(params["text"], Path(params["path"]), params["name"], parent, params["modular"], params["model"])
    except NotInheritableError as error:
        raise ValueError(str(error)) from error
    return {"path": str(file.path), "text": file.text, "notes": list(file.notes)}


def missing_packages(embedder: str) -> list[str]:
    """The distributions to install before this interpreter can embed with `embedder`."""
    needed = NEEDED_TO_EMBED if embedder == DEFAULT else (*NEEDED_TO_EMBED, "sentence_transformers")
    return [_DISTRIBUTIONS.get(name, name) for name in needed if find_spec(name) is None]


def serve(lines: TextIO, out: TextIO) -> None:
    """Answer until the end of `lines`; an error in one question is its answer, and the next goes on."""
    worker = Worker()
    methods = {
        "probe": worker.probe,
        "open": worker.open,
        "update": worker.update,
        "search": worker.search,
        "inherit": inherit,
    }
    for line in lines:
        request = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            reply["result"] = methods[request["method"]](request["params"])
        except (IndexDamagedError, OSError, SyntaxError, ValueError) as error:
            reply["error"] = _sentence(error)
        except Exception as error:  # noqa: BLE001  one question must not end the process; the server logs this
            reply["error"] = f"{type(error).__name__}: {error}"
        out.write(json.dumps(reply, allow_nan=False) + "\n")
        out.flush()


def build(arguments: argparse.Namespace, out: TextIO) -> int:
    if hasattr(os, "nice"):
        os.nice(5)  # the person hovers meanwhile, and on two cores a build takes both

    def report(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    reported: list[Progress] = []

    def on_progress(progress: Progress) -> None:
        if reported[-1:] != [progress]:
            reported.append(progress)
            report({"stage": progress.stage, "percent": progress.percent})

    library = Library(tuple(map(Path, arguments.root)), arguments.origin, arguments.version or None)
    embedder = None if missing_packages(arguments.embedder) else arguments.embedder
    try:
        built = build_index(library, Path(arguments.index), embedder, on_progress, afresh=arguments.afresh)
    except (OSError, ValueError) as error:
        report({"error": _sentence(error)})
        return 2
    report({"problems": list(built.problems)})
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m twinlens.similarity.worker")
    parser.add_argument("--borrow", type=Path, help="a pure Python package, for an interpreter that lacks it")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve")
    building = commands.add_parser("build")
    building.add_argument("--root", action="append", required=True)
    building.add_argument("--origin", required=True)
    building.add_argument("--version", default="")
    building.add_argument("--index", required=True)
    building.add_argument("--embedder", required=True)
    building.add_argument("--afresh", action="store_true")
    parsed = parser.parse_args(arguments)
    if parsed.borrow:
        borrow(parsed.borrow)
    out = take_stdout()
    if parsed.command == "build":
        return build(parsed, out)
    serve(sys.stdin, out)
    return 0


def _library(params: Mapping[str, Any]) -> Library | None:
    installed = find_spec("transformers")
    package = Path(installed.origin).parent if installed and installed.origin else None
    return find_library([Path(path) for path in params["near"]], package, [Path(path) for path in params["folders"]])


def _embedder_of(found: Index, folder: Path) -> Embedder:
    from twinlens.similarity.embedder import open_embedder

    return open_embedder(found.embedder, folder)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}. Choose another folder for the index or make this one usable."
    return str(error)


if __name__ == "__main__":
    raise SystemExit(main())
