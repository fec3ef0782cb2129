"""The language server: its features, its services, and its life from `initialize` to the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from pygls.uris import to_fs_path

from twinlens import __version__
from twinlens.lsp import configuration
from twinlens.lsp.checkouts import Checkouts
from twinlens.lsp.contributions import Contributions, answers
from twinlens.lsp.documents import Documents
from twinlens.lsp.editor import Editor
from twinlens.lsp.features import checks, diffs, lookalikes, mlinter, similarity, skips, traces
from twinlens.lsp.handlers import join_contributions
from twinlens.lsp.jsonrpc import TwinlensProtocol
from twinlens.lsp.library_index import LibraryIndex
from twinlens.lsp.protocol import InitializationOptions
from twinlens.lsp.services import Services
from twinlens.lsp.settings import Live, Settings

logger = logging.getLogger(__name__)


class Feature(Protocol):
    """A module of `features/`."""

    def register(self, server: LanguageServer, services: Services) -> None:
        """Adds the feature's contributors and requests."""


FEATURES: tuple[Feature, ...] = (similarity, lookalikes, traces, diffs, checks, mlinter, skips)


class TwinlensServer(LanguageServer):
    """pygls' server without its popups: an error in a notification would show one a keystroke."""

    def __init__(self) -> None:
        self.converter = default_converter()
        super().__init__(
            "twinlens",
            __version__,
            # pygls applies incremental changes by `str.splitlines`, which ends lines where no editor does (form feed).
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            protocol_cls=TwinlensProtocol,
            converter_factory=lambda: self.converter,
        )

    def report_server_error(self, error: Exception, source: type[PyglsError | JsonRpcException]) -> None:
        """Logs the error; whoever sent a request was answered already."""
        logger.error("%s: %s", source.__name__, error)


def create_server(features: Sequence[Feature] = FEATURES) -> TwinlensServer:
    """A server with `features`, not yet connected."""
    server = TwinlensServer()
    session, settings = Live(InitializationOptions()), Live(Settings())
    documents = Documents(lambda: server.workspace)
    services = Services(
        session=session,
        settings=settings,
        documents=documents,
        index=LibraryIndex(session, settings, lambda: _folders(server)),
        checkouts=Checkouts(session, documents, lambda: _folders(server)),
        editor=Editor(server),
        contribute=Contributions(),
    )
    for feature in features:
        feature.register(server, services)
    _live(server, services)
    _follow_files(server, services)
    join_contributions(server, services, server.converter)
    return server


def _live(server: TwinlensServer, services: Services) -> None:
    """From `initialize` to the end: the session, the settings, `contribute.start` and `contribute.stop`."""
    lives: list[asyncio.Task[None]] = []

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options = params.initialization_options
        if isinstance(options, dict):
            services.session.set(server.converter.structure(options, InitializationOptions))

    @server.feature(types.INITIALIZED)
    async def initialized(_: types.InitializedParams) -> None:
        lives.append(asyncio.create_task(live()))

    async def live() -> None:
        # The loop cancels this task when it ends for whatever reason, so that no process outlives the server.
        try:
            await configuration.follow(server, services.settings)
            await answers(services.contribute.to_start)
            await asyncio.Event().wait()
        finally:
            await answers(services.contribute.to_stop)

    @server.feature(types.SHUTDOWN)
    async def shutdown(_: None) -> None:
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)


def _follow_files(server: TwinlensServer, services: Services) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await services.documents.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def typed(params: types.DidChangeTextDocumentParams) -> None:
        await services.documents.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        services.documents.forget(params.text_document.uri)

    # The client watches the workspace's files, and tells of a save sooner; of a file elsewhere it tells this alone.
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        path = to_fs_path(params.text_document.uri)
        if path is not None:
            await answers(services.contribute.to_files_changed, [Path(path)])

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(_: types.DidChangeConfigurationParams) -> None:
        await configuration.pull(server, services.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def changed(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [Path(path) for change in params.changes if (path := to_fs_path(change.uri)) is not None]
        python = [path for path in paths if path.suffix == ".py" or path.is_dir() or not path.suffix]
        if python:
            await answers(services.contribute.to_files_changed, python)


def _folders(server: TwinlensServer) -> list[Path]:
    paths = (to_fs_path(folder.uri) for folder in server.workspace.folders.values())
    return [Path(path) for path in paths if path is not None]
