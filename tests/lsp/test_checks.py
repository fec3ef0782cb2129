"""Checks of capturing and patching, and mlinter's findings, asked over the protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor, eventually
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="module")

PORT = """from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs
from transformers.monkey_patching import register_patch_mapping


class PortAttention(nn.Module):
    def forward(self, states, **kwargs):
        return states, None


class PortLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attn = PortAttention()


class PortModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": PortLayer, "attentions": PortAttention}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([PortLayer(config) for _ in range(config.num_hidden_layers)])

    @capture_outputs
    def forward(self, states, **kwargs):
        return states


class Fused(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()


register_patch_mapping({"LlamaAttention": Fused, "^(Llama|Mistral)MLP$": Fused})
"""
MISSPELT = PORT.replace('"hidden_states": PortLayer', '"hidden_states": PortLayr')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warm(small_library: Path, tmp_path_factory: pytest.TempPathFactory):
    async with editor(tmp_path_factory.mktemp("cache"), {"library": [str(small_library)]}) as opened:
        await opened.until("ready")
        yield opened


async def problems(asked: Editor, uri: str) -> list[types.Diagnostic]:
    params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
    report = await asyncio.wait_for(asked.client.text_document_diagnostic_async(params), 20)
    return list(report.items)


def of_checks(found: list[types.Diagnostic]) -> list[tuple[object, str, int]]:
    return [
        (p.code, p.message, p.range.start.line) for p in found if p.source == "Twinlens" and p.code != "similar-class"
    ]


async def actions(asked: Editor, uri: str, problem: types.Diagnostic) -> dict[str, types.CodeAction]:
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(uri), problem.range, types.CodeActionContext([problem])
    )
    return {action.title: action for action in await asked.client.text_document_code_action_async(params)}


async def test_findings_follow_what_is_typed(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "port.py").as_uri()
    warm.open(uri, PORT)
    assert of_checks(await problems(warm, uri)) == []
    warm.type(uri, MISSPELT)
    line = MISSPELT[: MISSPELT.index("PortLayr")].count("\n")
    message = "PortLayr is neither defined nor imported in this file: did you mean PortLayer?"
    assert of_checks(await problems(warm, uri)) == [("unknown-class", message, line)]
    warm.type(uri, MISSPELT + "def unfinished(")
    assert [code for code, _, _ in of_checks(await problems(warm, uri))] == ["unknown-class"]
    warm.type(uri, PORT)
    assert of_checks(await problems(warm, uri)) == []


async def test_a_finding_has_a_page_a_fix_and_a_way_to_ignore_it(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "port.py").as_uri()
    warm.open(uri, MISSPELT)
    (problem,) = [found for found in await problems(warm, uri) if found.code == "unknown-class"]
    assert problem.severity == types.DiagnosticSeverity.Warning
    assert problem.code_description is not None
    page = Path(problem.code_description.href.removeprefix("file://"))
    assert page.read_text(encoding="utf-8").startswith("# unknown-class")
    found = await actions(warm, uri, problem)
    assert list(found) == ["Change it to PortLayer", "Explain unknown-class", "Ignore unknown-class here"]
    (edit,) = found["Change it to PortLayer"].edit.changes[uri]
    assert (edit.new_text, edit.range) == ("PortLayer", problem.range)
    (silence,) = found["Ignore unknown-class here"].edit.changes[uri]
    assert silence.new_text == "    # twinlens: ignore[unknown-class]\n"


async def test_columns_are_the_clients(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "wide.py").as_uri()
    text = 'class M:\n    s = "é😀"; _can_record_outputs = {"attentions": Gone}\n'
    warm.open(uri, text)
    (problem,) = [found for found in await problems(warm, uri) if found.code == "unknown-class"]
    line = text.split("\n")[1].encode("utf-16-le")
    start, end = problem.range.start.character, problem.range.end.character
    assert line[2 * start : 2 * end].decode("utf-16-le") == "Gone"


async def test_hovering_a_recorder_tells_the_modules_that_it_hooks(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "port.py").as_uri()
    warm.open(uri, PORT)
    hover = await warm.hover_on(uri, PORT, "PortAttention}")
    assert "**Recorded as `attentions`**, when `output_attentions=True`: element 1" in hover
    assert "- `PortModel`: `layers.{i}.attn`" in hover
    assert "the input of the first, then element 0" in await warm.hover_on(uri, PORT, '"hidden_states"')


async def test_a_lens_counts_the_classes_of_each_key_and_lists_them(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "port.py").as_uri()
    warm.open(uri, PORT)
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    lenses = await warm.client.text_document_code_lens_async(params)
    mine = [lens for lens in lenses if lens.command.command == "twinlens.showPatchMatches"]
    assert [lens.command.title for lens in mine] == ["LlamaAttention: 1 class", "^(Llama|Mistral)MLP$: 2 classes"]
    call = PORT[: PORT.index("register_patch_mapping({")].count("\n")
    assert {lens.range.start.line for lens in mine} == {call}
    answer = await warm.ask("twinlens/patchMatches", {"uri": uri, "key": "^(Llama|Mistral)MLP$"})
    assert [found.name for found in answer.classes] == ["LlamaMLP", "MistralMLP"]
    for found in answer.classes:
        text = Path(found.path).read_text(encoding="utf-8").split("\n")
        assert text[found.line - 1].startswith(f"class {found.name}(")


async def test_transformers_own_registry_reaches_no_class_of_the_file(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "port.py").as_uri()
    counts = []
    for text in (PORT, PORT.replace("from transformers.monkey_patching", "from twinlens.patching")):
        warm.open(uri, text.replace('"LlamaAttention"', '"^(Llama|Port)Attention$"'))
        lenses = await warm.client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(uri))
        )
        counts += [lens.command.title for lens in lenses if "Port" in lens.command.title]
    assert counts == ["^(Llama|Port)Attention$: 1 class", "^(Llama|Port)Attention$: 2 classes"]


async def test_a_pattern_that_is_too_wide_is_anchored_by_its_fix(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "port.py").as_uri()
    text = PORT.replace('"LlamaAttention"', '"Llama.*Rotary"').replace("^(Llama|Mistral)MLP$", "Llama.*")
    warm.open(uri, text)
    codes = [code for code, _, _ in of_checks(await problems(warm, uri))]
    assert "patch-too-wide" in codes


MLINTER = """
from dataclasses import dataclass


@dataclass
class Violation:
    line_number: int
    message: str
    rule_id: str


def analyze_file(path, text):
    lines = text.split("\\n")
    return [Violation(n, f"{path.name}: {line}", "TRF999") for n, line in enumerate(lines, 1) if "bad" in line]
"""


async def mlinter_findings(cache: Path, settings: dict, where: Path) -> list[types.Diagnostic]:
    package = cache / "packages"
    package.mkdir()
    (package / "mlinter.py").write_text(MLINTER)
    interpreter = cache / "python"
    interpreter.write_text(f'#!/bin/sh\nPYTHONPATH="{package}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    interpreter.chmod(0o755)
    async with editor(cache, settings, interpreter=str(interpreter)) as opened:
        # The settings are read by then.
        await eventually(lambda: bool(opened.statuses), 20)
        opened.open(where.as_uri(), "good = 1\n    bad = 2\n")
        return [found for found in await problems(opened, where.as_uri()) if found.source == "mlinter"]


async def test_mlinter_speaks_under_its_own_name(tmp_path: Path, small_library: Path):
    (problem,) = await mlinter_findings(tmp_path, {"library": [str(small_library)]}, tmp_path / "modeling_port.py")
    assert (problem.code, problem.message) == ("TRF999", "modeling_port.py:     bad = 2")
    assert problem.range == types.Range(types.Position(1, 4), types.Position(1, 11))


async def test_mlinter_can_be_turned_off(tmp_path: Path, small_library: Path):
    settings = {"library": [str(small_library)], "mlinter": False}
    assert await mlinter_findings(tmp_path, settings, tmp_path / "modeling_port.py") == []


async def test_mlinter_is_left_out_where_it_is_not_installed(warm: Editor, tmp_path: Path):
    uri = (tmp_path / "modeling_port.py").as_uri()
    warm.open(uri, PORT)
    assert [found for found in await problems(warm, uri) if found.source == "mlinter"] == []
