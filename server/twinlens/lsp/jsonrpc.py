"""The protocol class: every request gets a reply, whatever was sent and whatever its handler answered.

pygls leaves four kinds of request without one, and the client's promise hangs: params that do not fit their type,
params that are missing, a result that JSON cannot carry, and NaN, which the client's parser takes for a broken
connection.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import Any

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

from twinlens.lsp.protocol import NOTIFICATIONS, REQUESTS

logger = logging.getLogger(__name__)


class Refused(JsonRpcException):
    """Raised by a request's handler for what its person should read: one sentence."""

    CODE = types.LSPErrorCodes.RequestFailed.value


class TwinlensProtocol(LanguageServerProtocol):
    """LSP with the requests of protocol.py."""

    @lru_cache  # noqa: B019 - one protocol lives as long as the process
    def get_message_type(self, method: str) -> type[Any] | None:
        """The attrs class of a request's or notification's message."""
        if method in REQUESTS:
            return _message(REQUESTS[method][0], _Request)
        if method in NOTIFICATIONS:
            return _message(NOTIFICATIONS[method], _Notification)
        return super().get_message_type(method)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Structures a message; a request that does not fit is answered with an error at once."""
        if data.get("method") in REQUESTS and data.get("params") is None:
            data = {**data, "params": {}}
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def _send_data(self, data: Any) -> None:
        try:
            plain = json.loads(json.dumps(data, default=self._serialize_message, allow_nan=False))
        except (TypeError, ValueError, AttributeError) as error:
            logger.exception("A message of type %s cannot be sent as JSON", type(data).__name__)
            if not hasattr(data, "result"):
                return
            failure = JsonRpcException(f"The answer cannot be sent as JSON: {error}").to_response_error()
            plain = self._converter.unstructure(types.ResponseErrorMessage(id=data.id, error=failure))
        super()._send_data(plain)


@attrs.define
class _Notification:
    method: str
    jsonrpc: str


@attrs.define
class _Request:
    id: int | str
    method: str
    jsonrpc: str


def _message(params: type[attrs.AttrsInstance], base: type[attrs.AttrsInstance]) -> type[Any]:
    return attrs.make_class(f"{params.__name__}Message", {"params": attrs.field(type=params)}, bases=(base,))
