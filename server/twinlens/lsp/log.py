"""Where log records go: to the client's log channel, or to stderr until there is a client."""

from __future__ import annotations

import logging

from lsprotocol import types
from pygls.lsp.server import LanguageServer

_LEVELS = (
    (logging.ERROR, types.MessageType.Error),
    (logging.WARNING, types.MessageType.Warning),
    (logging.INFO, types.MessageType.Info),
    (logging.NOTSET, types.MessageType.Debug),
)


class ClientLogHandler(logging.Handler):
    """Sends our own records as `window/logMessage`."""

    def __init__(self, server: LanguageServer) -> None:
        super().__init__()
        self._server = server
        # A record of pygls about sending this very message would be sent, and so on without end.
        self.addFilter(lambda record: not record.name.startswith("pygls"))

    def emit(self, record: logging.LogRecord) -> None:
        """Sends the record, unless no client is connected."""
        if self._server.protocol.writer is None:
            return
        kind = next(kind for level, kind in _LEVELS if record.levelno >= level)
        try:
            self._server.window_log_message(types.LogMessageParams(kind, self.format(record)))
        except (OSError, ValueError):  # the client is gone, its pipe broken or closed
            self.handleError(record)


def log_to_client(server: LanguageServer) -> None:
    """Sends the records of `twinlens` to the client; pygls' own go to stderr from warnings up.

    At INFO, pygls would log the body of each message.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.WARNING)
    ours = logging.getLogger("twinlens")
    ours.setLevel(logging.DEBUG)
    ours.addHandler(ClientLogHandler(server))
    ours.propagate = False
