"""The server with one feature that does what features must not do, to see that the others and the client live on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import attrs
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from twinlens.lsp import __main__, protocol
from twinlens.lsp.documents import Document
from twinlens.lsp.jsonrpc import Refused
from twinlens.lsp.server import create_server
from twinlens.lsp.services import Services
from twinlens.source.definitions import Definition, read_definitions


@attrs.frozen
class ProbeParams:
    number: int


@attrs.frozen
class ProbeResult:
    answer: Any


PROBES = ("echo", "raise", "refuse", "sleep", "nan", "object", "print")
protocol.REQUESTS.update({f"probe/{name}": (ProbeParams, ProbeResult) for name in PROBES})


def _register(server: LanguageServer, services: Services) -> None:
    _requests(server)
    _contributors(services)


def _requests(server: LanguageServer) -> None:
    @server.feature("probe/echo")
    async def echo(params: ProbeParams) -> ProbeResult:
        return ProbeResult(params.number)

    @server.feature("probe/raise")
    async def fail(params: ProbeParams) -> ProbeResult:
        raise ZeroDivisionError("by zero")

    @server.feature("probe/refuse")
    async def refuse(params: ProbeParams) -> ProbeResult:
        raise Refused("No recipe gives a LumenModel; write one in .twinlens/recipes.")

    @server.feature("probe/sleep")
    async def sleep(params: ProbeParams) -> ProbeResult:
        await asyncio.sleep(params.number)
        return ProbeResult(None)

    @server.feature("probe/nan")
    async def nan(params: ProbeParams) -> ProbeResult:
        return ProbeResult([1.0, math.nan])

    @server.feature("probe/object")
    async def not_json(params: ProbeParams) -> ProbeResult:
        return ProbeResult({1, 2})

    @server.feature("probe/print")
    async def chatter(params: ProbeParams) -> ProbeResult:
        print("a print of the user's model", flush=True)  # noqa: T201
        process = await asyncio.create_subprocess_exec("echo", "a child's print")
        return ProbeResult(await process.wait())


def _contributors(services: Services) -> None:
    @services.contribute.hover
    async def broken_hover(document: Document, position: types.Position) -> str | None:
        raise RuntimeError("one contributor fails")

    @services.contribute.hover
    async def word_hover(document: Document, position: types.Position) -> str | None:
        word = document.lines.word(position)
        return word and f"the word {word.text}"

    @services.contribute.hover
    async def names_hover(document: Document, position: types.Position) -> str | None:
        parsed = await services.documents.parse(document, read_definitions)
        return parsed and "defines " + ", ".join(found.name for found in parsed.value)

    @services.contribute.diagnostics
    async def diagnostics(document: Document) -> Sequence[types.Diagnostic]:
        parsed = await services.documents.parse(document, read_definitions)
        return [_named(found, document) for found in parsed.value] if parsed else []

    @services.contribute.code_lenses
    async def lenses(document: Document) -> Sequence[types.CodeLens]:
        settings = services.settings.current
        title = f"library {settings.library!r}, embedder {settings.embedder!r}"
        return [types.CodeLens(document.lines.range(1, 0, 1, 0), types.Command(title, "probe.nothing"))]


def _named(found: Definition, document: Document) -> types.Diagnostic:
    return types.Diagnostic(document.lines.name_range(found.line, found.name_column, found.name), found.name)


if __name__ == "__main__":
    __main__.create_server = lambda: create_server([SimpleNamespace(register=_register)])
    __main__.main()
