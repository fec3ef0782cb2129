"""What the server tells the editor without being asked."""

from __future__ import annotations

import attrs
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer


class Editor:
    """The client, where a feature needs no more than to ring its bell."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    def notify(self, method: str, params: attrs.AttrsInstance) -> None:
        """Sends a notification of our own (protocol.py)."""
        self._server.protocol.notify(method, params)

    def refresh_lenses(self) -> None:
        """Has the client ask for all code lenses again."""
        if self._can("workspace.code_lens.refresh_support"):
            self._server.workspace_code_lens_refresh(None)

    def refresh_diagnostics(self) -> None:
        """Has the client pull all diagnostics again."""
        if self._can("workspace.diagnostics.refresh_support"):
            self._server.workspace_diagnostic_refresh(None)

    def _can(self, capability: str) -> bool:
        return bool(get_capability(self._server.client_capabilities, capability, False))
