"""Trace a forward: the lenses, the process that runs it, and what the view Traces lists."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from twinlens.lsp import protocol
from twinlens.lsp.documents import Document
from twinlens.lsp.jsonrpc import Refused
from twinlens.lsp.services import Services
from twinlens.source.definitions import read_source
from twinlens.tracing.folders import RECIPES_FOLDER, nearest_recipes
from twinlens.tracing.job import Failed, Job, Outcome, Progress
from twinlens.tracing.listing import Entry, describe_trace, list_traces
from twinlens.tracing.process import run_job
from twinlens.tracing.template import recipe_name, recipe_template
from twinlens.tracing.traceable import Traceable, traceables

TRACE_FORWARD = "twinlens.traceForward"
TRACE_WITH = "twinlens.traceWith"

_SECONDS_BETWEEN_OUTPUTS = 0.1


def register(server: LanguageServer, services: Services) -> None:
    """Adds the lenses, and the requests of tracing, of recipes and of the view."""
    services.documents.read_parts(traceables)

    @services.contribute.code_lenses
    async def code_lenses(document: Document) -> Sequence[types.CodeLens]:
        if not services.session.current.trusted or document.path is None:
            return []
        read = await services.documents.parse(document, traceables)
        return [lens for found in read.value for lens in _lenses(read.document, found)] if read else []

    @server.feature(protocol.TRACE)
    async def trace(params: protocol.TraceParams) -> protocol.TraceResult:
        _refuse_where_untrusted(services)
        file = _file(params.uri)
        root = _root(server, file)
        job = Job(
            target=params.recipe or f"{file}::{params.name}",
            root=str(root),
            dtype=params.dtype,
            stats_only=params.stats_only,
            only=tuple(params.only),
        )

        def on_progress(progress: Progress) -> None:
            count = progress.count if progress.stage == "running" else None
            said = protocol.TraceProgress(params.id, progress.detail, count)
            services.editor.notify(protocol.TRACE_PROGRESS, said)

        def on_output(text: str) -> None:
            services.editor.notify(protocol.TRACE_OUTPUT, protocol.TraceOutput(text))

        python = services.session.current.interpreter or sys.executable
        with _Together(on_output) as output:
            return _result(await run_job(python, job, on_progress, output.add))

    @server.feature(protocol.TRACES)
    async def traces(_: protocol.Nothing) -> protocol.TraceList:
        found = await asyncio.to_thread(list_traces, _folders(server))
        return protocol.TraceList([_entry(entry) for entry in found])

    @server.feature(protocol.RECIPES)
    async def recipes(params: protocol.RecipesParams) -> protocol.RecipeList:
        file = _file(params.uri)
        return await asyncio.to_thread(_recipes, file, _root(server, file))

    @server.feature(protocol.RECIPE_TEMPLATE)
    async def template(params: protocol.RecipeTemplateParams) -> protocol.RecipeTemplate:
        file = _file(params.uri)
        root = _root(server, file)
        try:
            text = recipe_template(services.documents.get(params.uri).text, params.name, file, root)
        except (ValueError, OSError) as error:
            raise Refused(f"No recipe can be written for {params.name} of {file.name}: {error}.") from error
        return protocol.RecipeTemplate(str(_free_path(root, recipe_name(params.name))), text)


def _lenses(document: Document, found: Traceable) -> list[types.CodeLens]:
    places = [document.lines.name_range(found.line, found.column, found.name)]
    if found.forward_line is not None:
        places.append(document.lines.range(found.forward_line, 0, found.forward_line, 0))
    titles = [("Trace forward", TRACE_FORWARD)]
    if not found.is_recipe:
        titles.append(("Trace with…", TRACE_WITH))
    return [
        types.CodeLens(place, types.Command(title, command, arguments=[document.uri, found.name]))
        for place in places
        for title, command in titles
    ]


def _refuse_where_untrusted(services: Services) -> None:
    if not services.session.current.trusted:
        raise Refused("Tracing runs code of the workspace: trust the workspace first.")


def _file(uri: str) -> Path:
    path = to_fs_path(uri) if uri.startswith("file:") else None
    if path is None:
        raise Refused("Save the file first: a trace runs what is on disk.")
    return Path(path)


def _folders(server: LanguageServer) -> list[Path]:
    paths = (to_fs_path(folder.uri) for folder in server.workspace.folders.values())
    return [Path(path) for path in paths if path is not None]


def _root(server: LanguageServer, file: Path) -> Path:
    """The workspace folder that holds `file`, the innermost of several; of a file outside all, the first folder."""
    folders = _folders(server)
    around = [folder for folder in folders if folder in file.parents]
    return max(around, key=lambda folder: len(folder.parts)) if around else (folders or [file.parent])[0]


def _result(outcome: Outcome) -> protocol.TraceResult:
    if isinstance(outcome, Failed):
        status = outcome.reason if outcome.reason in ("no recipe", "no torch") else "failed"
        return protocol.TraceResult(status, outcome.message, outcome.traceback, None)
    entry = _entry(describe_trace(Path(outcome.folder)))
    status = "raised" if outcome.error else "complete"
    return protocol.TraceResult(status, outcome.error, outcome.traceback, entry)


def _entry(entry: Entry) -> protocol.TraceEntry:
    info = entry.info
    return protocol.TraceEntry(
        folder=str(entry.folder),
        name=entry.folder.name,
        class_name=(info.part or info.class_name) if info else "",
        target=info.target if info else "",
        dtype=info.dtype if info else "",
        created=info.created if info else "",
        seconds=entry.seconds,
        bytes=entry.bytes,
        status=entry.status,
        error=entry.error,
        summary=str(entry.summary) if entry.summary else None,
    )


def _recipes(file: Path, root: Path) -> protocol.RecipeList:
    """Read from the source of the recipe files; one that does not parse has none to show."""
    found: list[protocol.RecipeEntry] = []
    for path in nearest_recipes(file.parent) or nearest_recipes(root):
        try:
            in_file = traceables(read_source(path))
        except (SyntaxError, OSError, UnicodeError):
            continue
        found += [
            protocol.RecipeEntry(recipe.name, f"{path}::{recipe.name}", recipe.target, str(path), recipe.line)
            for recipe in in_file
            if recipe.is_recipe
        ]
    return protocol.RecipeList(str(root / RECIPES_FOLDER), found)


def _free_path(root: Path, name: str) -> Path:
    path = root / RECIPES_FOLDER / f"{name}.py"
    number = 2
    while path.exists():
        path = path.with_name(f"{name}_{number}.py")
        number += 1
    return path


class _Together:
    """Passes texts on joined, ten times a second at most: a model may print a thousand lines at once."""

    def __init__(self, pass_on: Callable[[str], None]) -> None:
        self._pass_on = pass_on
        self._waiting: list[str] = []
        self._last = 0.0

    def __enter__(self) -> _Together:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()

    def add(self, text: str) -> None:
        self._waiting.append(text)
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_OUTPUTS:
            self._flush()

    def _flush(self) -> None:
        self._last = time.monotonic()
        if self._waiting:
            self._pass_on("".join(self._waiting))
            self._waiting.clear()
