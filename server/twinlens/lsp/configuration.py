"""The settings pulled from the client, and pulled again when they change."""

from __future__ import annotations

import logging

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from twinlens.lsp.settings import SECTION, Live, Settings, read_settings

logger = logging.getLogger(__name__)

_WATCHED = types.DidChangeWatchedFilesRegistrationOptions(
    [
        types.FileSystemWatcher("**/*.py", types.WatchKind.Change),
        # A folder that is moved or deleted is told of alone, not the files in it.
        types.FileSystemWatcher("**/*", types.WatchKind.Create | types.WatchKind.Delete),
    ]
)


async def follow(server: LanguageServer, settings: Live[Settings]) -> None:
    """Asks to be told of changed settings and of changed Python files, where the client can, and reads the settings."""
    registrations = []
    if _can(server, "workspace.did_change_configuration.dynamic_registration"):
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        registrations.append(types.Registration("settings", method, {"section": SECTION}))
    if _can(server, "workspace.did_change_watched_files.dynamic_registration"):
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registrations.append(types.Registration("python files", method, _WATCHED))
    if registrations:
        try:
            await server.client_register_capability_async(types.RegistrationParams(registrations))
        except JsonRpcException as error:
            logger.warning("The client does not tell of changed settings and files: %s", error)
    await pull(server, settings)


async def pull(server: LanguageServer, settings: Live[Settings]) -> None:
    """Reads the settings; a client that cannot be asked has the defaults."""
    if not _can(server, "workspace.configuration"):
        return
    asked = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
    try:
        (answer,) = await server.workspace_configuration_async(asked)
    except JsonRpcException as error:
        logger.warning("The settings keep their last values, since the client did not answer: %s", error)
        return
    settings.set(read_settings(answer))


def _can(server: LanguageServer, capability: str) -> bool:
    return bool(get_capability(server.client_capabilities, capability, False))
