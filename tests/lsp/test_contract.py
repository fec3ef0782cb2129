"""Each request of our own settles, whatever is sent: good params, bad ones, none, and when it is cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import pytest
import pytest_asyncio
from lsp_harness import Editor, editor
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import default_converter
from twinlens.lsp.protocol import REQUESTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(small_library: Path, tmp_path_factory: pytest.TempPathFactory):
    async with editor(tmp_path_factory.mktemp("cache"), {"library": [str(small_library)]}) as opened:
        await opened.until("ready")
        yield opened


async def settles(server: Editor, method: str, params: Any) -> str:
    """`result` or `error`; raises `TimeoutError` where neither comes."""
    try:
        await server.ask(method, params, SECONDS)
    except JsonRpcException:
        return "error"
    return "result"


@pytest.mark.parametrize("method", REQUESTS)
async def test_params_of_the_right_shape_settle(server: Editor, method: str):
    params = default_converter().unstructure(example(REQUESTS[method][0]))
    assert await settles(server, method, params) in ("result", "error")


@pytest.mark.parametrize("method", [method for method, (params, _) in REQUESTS.items() if attrs.fields(params)])
@pytest.mark.parametrize("params", [3, "text", [], {"uri": {}}])
async def test_params_of_a_wrong_shape_are_refused(server: Editor, method: str, params: Any):
    assert await settles(server, method, params) == "error"


@pytest.mark.parametrize("method", REQUESTS)
async def test_no_params_settle(server: Editor, method: str):
    assert await settles(server, method, None) in ("result", "error")


@pytest.mark.parametrize("method", REQUESTS)
async def test_a_cancelled_request_settles(server: Editor, method: str):
    params = default_converter().unstructure(example(REQUESTS[method][0]))
    pending = asyncio.wrap_future(server.client.protocol.send_request(method, params, msg_id=method))
    server.client.protocol.notify(types.CANCEL_REQUEST, types.CancelParams(method))
    await asyncio.wait([pending], timeout=SECONDS)
    assert pending.done()
    assert pending.exception() is None or isinstance(pending.exception(), JsonRpcException)


def example(hint: Any) -> Any:
    """The smallest value of a type."""
    if attrs.has(hint):
        hints = get_type_hints(hint)
        return hint(**{field.name: example(hints[field.name]) for field in attrs.fields(hint)})
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return example(arguments[0])
    return (origin or hint)()
