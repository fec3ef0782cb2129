"""A real server process, asked as VS Code asks it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient
from pytest_lsp.client import make_test_lsp_client


def capabilities() -> types.ClientCapabilities:
    """What VS Code says of itself, as far as the server looks at it."""
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16]),
        workspace=types.WorkspaceClientCapabilities(
            configuration=True,
            workspace_folders=True,
            did_change_configuration=types.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
            code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
        ),
        text_document=types.TextDocumentClientCapabilities(
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
            diagnostic=types.DiagnosticClientCapabilities(),
        ),
    )


@dataclass(frozen=True, slots=True)
class Editor:
    """A running server, asked as an editor asks it."""

    client: LanguageClient
    statuses: list[Any] = field(default_factory=list)
    registrations: list[types.Registration] = field(default_factory=list)

    @property
    def server_process(self) -> int:
        return self.client._server.pid

    def hang_up(self) -> None:
        """Ends the connection without a word, as an editor that crashed does."""
        self.client._server.stdin.close()

    def open(self, uri: str, text: str) -> None:
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text))
        )

    def type(self, uri: str, text: str) -> None:
        """The text as it is now, unsaved."""
        document = types.VersionedTextDocumentIdentifier(2, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def hover(self, uri: str, line: int, character: int) -> str:
        where = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        answer = await asyncio.wait_for(self.client.text_document_hover_async(where), 10)
        return answer.contents.value if answer else ""

    async def hover_on(self, uri: str, text: str, name: str) -> str:
        """Hover on the first line of `text` that holds `name`."""
        before, _, _ = text.partition(name)
        return await self.hover(uri, before.count("\n"), len(before.rpartition("\n")[2]) + 1)

    async def ask(self, method: str, params: Any, seconds: float = 10) -> Any:
        return await asyncio.wait_for(self.client.protocol.send_request_async(method, params), seconds)

    async def until(self, state: str) -> Any:
        """Waits for a state of the index."""
        await eventually(lambda: bool(self.statuses) and self.statuses[-1].state == state, 60)
        return self.statuses[-1]


async def eventually(happened: Callable[[], bool], seconds: float) -> None:
    """Waits until it has happened; raises `TimeoutError` where it does not in time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not happened():
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError
        await asyncio.sleep(0.02)


@asynccontextmanager
async def editor(
    cache: Path,
    settings: dict[str, Any],
    interpreter: str = sys.executable,
    folders: Sequence[Path] = (),
    **environment: str,
) -> AsyncIterator[Editor]:
    """A server with these settings, ended at the end."""
    client = make_test_lsp_client()
    opened = Editor(client)
    client.feature("twinlens/indexStatus")(lambda status: opened.statuses.append(status))
    client.set_configuration({"twinlens": settings})
    await client.start_io(sys.executable, "-m", "twinlens.lsp", env={**os.environ, **environment})
    await start_session(client, {"interpreter": interpreter, "cacheDir": str(cache)}, folders, opened.registrations)
    try:
        yield opened
    finally:
        if not client._server.stdin.is_closing():
            await client.shutdown_session()
        await client.stop()


async def start_session(
    client: LanguageClient,
    options: dict[str, Any] | None = None,
    folders: Sequence[Path] = (),
    registrations: list[types.Registration] | None = None,
) -> None:
    """Initializes a server as VS Code would, and answers what it asks in return.

    What it registers is added to `registrations`.
    """
    registered = [] if registrations is None else registrations
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: registered.extend(params.registrations))
    opened = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
    await client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities(), initialization_options=options, workspace_folders=opened or None
        )
    )
