"""What the server promises whatever its features: each request is answered, one feature's fault stays its own."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

URI = "file:///lumen/modeling_lumen.py"


async def ask(client: LanguageClient, method: str, params: Any) -> Any:
    return await asyncio.wait_for(client.protocol.send_request_async(method, params), 2)


def open_document(client: LanguageClient, text: str, uri: str = URI) -> None:
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text)))


def type_text(client: LanguageClient, text: str, version: int, uri: str = URI) -> None:
    document = types.VersionedTextDocumentIdentifier(version, uri)
    change = types.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))


async def hover(client: LanguageClient, line: int, character: int, uri: str = URI) -> str:
    where = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
    answer = await asyncio.wait_for(client.text_document_hover_async(where), 2)
    return answer.contents.value if answer else ""


async def pull(client: LanguageClient, previous: str | None = None) -> Any:
    document = types.TextDocumentIdentifier(URI)
    return await client.text_document_diagnostic_async(
        types.DocumentDiagnosticParams(document, previous_result_id=previous)
    )


async def test_a_request_of_our_own_is_answered(probe: LanguageClient):
    assert (await ask(probe, "probe/echo", {"number": 7})).answer == 7


async def test_params_of_the_wrong_type_are_refused(probe: LanguageClient):
    with pytest.raises(JsonRpcException) as refusal:
        await ask(probe, "probe/echo", {"number": "seven"})
    assert refusal.value.code == types.ErrorCodes.InvalidParams.value


async def test_missing_params_are_refused(probe: LanguageClient):
    with pytest.raises(JsonRpcException) as refusal:
        await ask(probe, "probe/echo", None)
    assert refusal.value.code == types.ErrorCodes.InvalidParams.value


async def test_a_request_without_the_key_params_is_answered(probe: LanguageClient):
    answer = asyncio.get_running_loop().create_future()
    probe.protocol._request_futures["bare"] = answer
    probe.protocol._send_data({"jsonrpc": "2.0", "id": "bare", "method": "probe/echo"})
    with pytest.raises(JsonRpcException):
        await asyncio.wait_for(answer, 2)


async def test_an_unknown_request_is_refused(probe: LanguageClient):
    with pytest.raises(JsonRpcException) as refusal:
        await ask(probe, "probe/unheard", {})
    assert refusal.value.code == types.ErrorCodes.MethodNotFound.value


async def test_a_handler_that_raises_answers_an_error(probe: LanguageClient):
    with pytest.raises(JsonRpcException, match="by zero"):
        await ask(probe, "probe/raise", {"number": 1})


async def test_a_refusal_reaches_the_client_as_its_own_sentence(probe: LanguageClient):
    with pytest.raises(JsonRpcException) as refusal:
        await ask(probe, "probe/refuse", {"number": 1})
    assert refusal.value.message == "No recipe gives a LumenModel; write one in .twinlens/recipes."
    assert refusal.value.code == types.LSPErrorCodes.RequestFailed.value


async def test_a_cancelled_request_settles_at_once(probe: LanguageClient):
    pending = asyncio.wrap_future(probe.protocol.send_request("probe/sleep", {"number": 60}, msg_id="long"))
    probe.protocol.notify(types.CANCEL_REQUEST, types.CancelParams("long"))
    with pytest.raises(JsonRpcException) as refusal:
        await asyncio.wait_for(pending, 2)
    assert refusal.value.code == types.LSPErrorCodes.RequestCancelled.value


@pytest.mark.parametrize("probe_name", ["nan", "object"])
async def test_an_answer_that_json_cannot_carry_becomes_an_error(probe: LanguageClient, probe_name):
    with pytest.raises(JsonRpcException, match="cannot be sent as JSON"):
        await ask(probe, f"probe/{probe_name}", {"number": 1})
    assert (await ask(probe, "probe/echo", {"number": 8})).answer == 8


async def test_prints_to_stdout_do_not_reach_the_client(probe: LanguageClient):
    assert (await ask(probe, "probe/print", {"number": 1})).answer == 0
    assert (await ask(probe, "probe/echo", {"number": 9})).answer == 9


async def test_a_failing_hover_is_logged_and_leaves_the_others(probe: LanguageClient):
    open_document(probe, "class LumenMLP:\n    pass\n")
    assert await hover(probe, 0, 8) == "the word LumenMLP\n\n---\n\ndefines LumenMLP"
    assert any("one contributor fails" in logged.message for logged in probe.log_messages)
    assert probe.messages == []


async def test_hover_follows_unsaved_text_and_keeps_the_last_that_parsed(probe: LanguageClient):
    open_document(probe, "class LumenMLP:\n    pass\n")
    type_text(probe, "class LumenRouter:\n    pass\n", 2)
    assert "defines LumenRouter" in await hover(probe, 0, 8)
    type_text(probe, "class LumenRouter(:\n    pass\n", 3)
    assert await hover(probe, 0, 8) == "the word LumenRouter\n\n---\n\ndefines LumenRouter"


async def test_columns_count_utf16_after_accents_and_emoji(probe: LanguageClient):
    open_document(probe, 'é = "🤗"; \nif "é🤗": \n    x = "🤗"\n\f\nclass Überblick: pass\n')
    report = await pull(probe)
    assert [found.range for found in report.items] == [types.Range(types.Position(4, 6), types.Position(4, 15))]
    open_document(probe, 's = "é🤗"; T = Überblick\n')
    assert "the word Überblick" in await hover(probe, 0, 15)
    assert "the word T" in await hover(probe, 0, 11)


async def test_the_servers_process_imports_nothing_heavy():
    heavy = {"torch", "numpy", "scipy", "transformers", "faiss", "tokenizers", "sentence_transformers", "libcst"}
    code = "import sys, twinlens.lsp.server; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    imported, _ = await done.communicate()
    assert "pygls" in imported.decode().split()
    assert heavy.isdisjoint(imported.decode().split())


async def test_unchanged_diagnostics_are_not_sent_again(probe: LanguageClient):
    open_document(probe, "class LumenMLP:\n    pass\n")
    first = await pull(probe)
    assert [found.message for found in first.items] == ["LumenMLP"]
    again = await pull(probe, first.result_id)
    assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
    type_text(probe, "class LumenRouter:\n    pass\n", 2)
    changed = await pull(probe, again.result_id)
    assert [found.message for found in changed.items] == ["LumenRouter"]


async def test_settings_are_pulled_again_when_they_change_and_wrong_ones_count_as_not_set(probe: LanguageClient):
    open_document(probe, "x = 1\n")
    probe.set_configuration({"twinlens": {"library": ["/models"], "embedder": 3}})
    probe.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    lens = types.CodeLensParams(types.TextDocumentIdentifier(URI))
    for _ in range(100):
        (found,) = await probe.text_document_code_lens_async(lens)
        if "/models" in found.command.title:
            break
        await asyncio.sleep(0.02)
    assert found.command.title == "library ('/models',), embedder ''"
    assert any("twinlens.embedder is ignored" in logged.message for logged in probe.log_messages)
