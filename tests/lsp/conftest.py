from __future__ import annotations

import sys
from pathlib import Path

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

HERE = Path(__file__).parent


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


async def start_session(client: LanguageClient, options: dict | None = None) -> None:
    """Initializes a server as VS Code would, and answers what it asks in return."""
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    await client.initialize_session(types.InitializeParams(capabilities=capabilities(), initialization_options=options))


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, str(HERE / "probe_server.py")]), scope="module"
)
async def probe(lsp_client: LanguageClient):
    """A server whose only feature is the one of probe_server.py."""
    await start_session(lsp_client)
    yield
    await lsp_client.shutdown_session()
