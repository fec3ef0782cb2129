"""Two traces side by side: the processes that hold open diffs, and marks at origins in the port's source."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from twinlens.lsp import protocol
from twinlens.lsp.documents import Document
from twinlens.lsp.jsonrpc import Refused
from twinlens.lsp.services import Services
from twinlens.similarity.processes import CallError, LineProcess, ProcessEndedError
from twinlens.tracing.reading import read_header
from twinlens.tracing.record import TraceError

SOURCE = "Twinlens"
MAP_FILE = ".twinlens/align.toml"


@dataclass(frozen=True, slots=True)
class _Mark:
    """A class of the port's source in which a difference is born."""

    file: Path
    line: int
    name: str
    path: str
    code: str
    message: str
    change: str


@dataclass(frozen=True, slots=True)
class _Open:
    process: LineProcess
    marks: tuple[_Mark, ...]


def register(server: LanguageServer, services: Services) -> None:
    """Adds the requests of the diff page, and diagnostics at the origins of what is open."""
    diffs = _Diffs(server, services)

    @server.feature(protocol.DIFF_OPEN)
    async def open_diff(params: protocol.DiffOpenParams) -> protocol.DiffOpened:
        return await diffs.open(params)

    @server.feature(protocol.DIFF_ROW)
    async def row(params: protocol.DiffRowParams) -> protocol.DiffDetails:
        return protocol.DiffDetails(json.dumps(await diffs.ask(params.id, "details", {"row": params.row})))

    @server.feature(protocol.DIFF_PAIR)
    async def pair(params: protocol.DiffPairParams) -> protocol.Nothing:
        method = "unpair" if params.apart else "pair"
        where = {"map": str(diffs.map_file(params.id)), "reference": params.reference, "port": params.port}
        await diffs.ask(params.id, method, where)
        return protocol.Nothing()

    @server.feature(protocol.DIFF_SUMMARIES)
    async def summaries(params: protocol.DiffId) -> protocol.DiffSummaries:
        found = await diffs.ask(params.id, "summaries", {"folder": str(diffs.folder(params.id))})
        return protocol.DiffSummaries(found["reference"], found["port"])

    @server.feature(protocol.DIFF_CLOSE)
    async def close(params: protocol.DiffId) -> protocol.Nothing:
        await diffs.close(params.id)
        return protocol.Nothing()

    @services.contribute.diagnostics
    async def diagnostics(document: Document) -> Sequence[types.Diagnostic]:
        return [_diagnostic(document, mark) for mark in diffs.marks_in(document)]

    @services.contribute.stop
    async def stop() -> None:
        await diffs.close_all()


class _Diffs:
    """What is open. A diff lives in a process of its own, so that a large one never holds up the server."""

    def __init__(self, server: LanguageServer, services: Services) -> None:
        self._server = server
        self._services = services
        self._open: dict[str, _Open] = {}
        self._maps: dict[str, Path] = {}
        self._opening = asyncio.Lock()

    async def open(self, params: protocol.DiffOpenParams) -> protocol.DiffOpened:
        root = self._root(Path(params.port))
        table = self.folder(params.id) / "table.json"
        question = {
            "reference": params.reference,
            "port": params.port,
            "map": str(root / MAP_FILE),
            "rtol": params.rtol if params.rtol >= 0 else None,
            "table": str(table),
            "root": str(root),
            "replay": self._recipes(params) if params.replay else None,
        }
        async with self._opening:
            process = await self._process(params.id)
        try:
            answer = await _asked(process, "open", question)
        except Refused:
            await self.close(params.id)
            raise
        self._maps[params.id] = root / MAP_FILE
        marks = tuple(_Mark(Path(mark.pop("file")), **mark) for mark in answer["marks"])
        self._open[params.id] = _Open(process, marks)
        self._services.editor.refresh_diagnostics()
        return protocol.DiffOpened(str(table), str(root / MAP_FILE), answer["outcome"], answer["reason"])

    async def ask(self, identity: str, method: str, params: Mapping[str, Any]) -> Any:
        opened = self._open.get(identity)
        if opened is None or not opened.process.running:
            raise Refused("These traces are not open any more; choose Compare Traces again.")
        return await _asked(opened.process, method, params)

    async def close(self, identity: str) -> None:
        opened = self._open.pop(identity, None)
        self._maps.pop(identity, None)
        if opened is not None:
            await opened.process.kill()
            self._services.editor.refresh_diagnostics()

    async def close_all(self) -> None:
        for identity in list(self._open):
            await self.close(identity)

    def map_file(self, identity: str) -> Path:
        found = self._maps.get(identity)
        if found is None:
            raise Refused("These traces are not open any more; choose Compare Traces again.")
        return found

    def folder(self, identity: str) -> Path:
        """Where the files of one diff go."""
        base = self._services.session.current.cache_dir or tempfile.gettempdir()
        return Path(base) / "diffs" / hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()

    def marks_in(self, document: Document) -> list[_Mark]:
        return [mark for opened in self._open.values() for mark in opened.marks if mark.file == document.path]

    async def _process(self, identity: str) -> LineProcess:
        known = self._open.get(identity)
        if known is not None and known.process.running:
            return known.process
        python = self._services.session.current.interpreter or sys.executable
        try:
            package = str(Path(__file__).resolve().parents[3])
            process = await LineProcess.start(
                [python, "-m", "twinlens.diffing.worker"], package, "process that compares traces"
            )
        except OSError as error:
            raise Refused(
                f"The Python interpreter {python} cannot be started ({error.strerror}); choose another one in the "
                "setting twinlens.interpreter."
            ) from error
        self._open[identity] = _Open(process, ())
        return process

    def _root(self, port: Path) -> Path:
        """The workspace folder that holds the port's trace; else the first one; else the trace's own."""
        paths = [to_fs_path(folder.uri) for folder in self._server.workspace.folders.values()]
        folders = [Path(path) for path in paths if path is not None]
        return next((folder for folder in folders if folder in port.parents), (folders or [port.parent])[0])

    def _recipes(self, params: protocol.DiffOpenParams) -> list[str]:
        if not self._services.session.current.trusted:
            raise Refused("A replay runs code of the workspace: trust the workspace first.")
        targets = []
        for path in (params.reference, params.port):
            folder = Path(path) if Path(path).is_dir() else Path(path).parent
            try:
                target = read_header(folder).target
            except TraceError as error:
                raise Refused(str(error)) from error
            if not target:
                raise Refused(f"{folder} does not say what it was made from; trace it with Trace forward to replay it.")
            targets.append(target)
        return targets


async def _asked(process: LineProcess, method: str, params: Mapping[str, Any]) -> Any:
    try:
        return await process.call(method, params)
    except CallError as error:
        raise Refused(str(error)) from error
    except ProcessEndedError as error:
        raise Refused("The page was closed before this was done." if process.killed else str(error)) from error


def _diagnostic(document: Document, mark: _Mark) -> types.Diagnostic:
    change = f" {mark.change}" if mark.change else ""
    lines = document.text.split("\n")
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    return types.Diagnostic(
        range=document.lines.name_range(mark.line, max(line.find(mark.name), 0), mark.name),
        message=f"{mark.path} differs from the reference: {mark.message}.{change}",
        severity=types.DiagnosticSeverity.Warning,
        source=SOURCE,
        code=mark.code,
    )
