"""Flags, code actions, comparing and inheriting, asked over the protocol."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor
from lsprotocol import types
from pygls.exceptions import JsonRpcException

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def nova(small_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A port that is Llama under another name, but for one method."""
    llama = (small_library / "llama/modeling_llama.py").read_text(encoding="utf-8")
    text = llama.replace("Llama", "Nova").replace("llama", "nova")
    text = text.replace(
        "return self.weight * hidden_states.to(input_dtype)", "return (1 + self.weight) * hidden_states"
    )
    path = tmp_path_factory.mktemp("nova") / "modeling_nova.py"
    path.write_text(text, encoding="utf-8")
    return path


LUMEN = Path(__file__).parents[1] / "samples" / "lumen" / "modeling_lumen.py"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warm(small_library: Path, tmp_path_factory: pytest.TempPathFactory):
    async with editor(tmp_path_factory.mktemp("cache"), {"library": [str(small_library)]}) as opened:
        await opened.until("ready")
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def opened(warm: Editor, nova: Path):
    warm.open(nova.as_uri(), nova.read_text(encoding="utf-8"))
    return warm


async def flags(asked: Editor, path: Path) -> dict[str, types.Diagnostic]:
    """The flagged classes by name."""
    document = types.TextDocumentIdentifier(path.as_uri())
    report = await asked.client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
    text = path.read_text(encoding="utf-8").split("\n")
    found = [problem for problem in report.items if problem.code == "similar-class"]
    return {text[p.range.start.line][p.range.start.character : p.range.end.character]: p for p in found}


async def actions(asked: Editor, path: Path, problem: types.Diagnostic) -> dict[str, types.CodeAction]:
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(path.as_uri()), problem.range, types.CodeActionContext([problem])
    )
    return {action.title: action for action in await asked.client.text_document_code_action_async(params)}


async def test_a_near_copy_is_flagged_with_both_scores(opened: Editor, nova: Path):
    problem = (await flags(opened, nova))["NovaMLP"]
    assert problem.message == "Nearly LlamaMLP (llama): embedding 1.00, Jaccard 1.00"
    assert problem.severity == types.DiagnosticSeverity.Information
    (related,) = problem.related_information or []
    assert related.location.uri.endswith("llama/modeling_llama.py")


async def test_a_class_of_its_own_is_not_flagged(warm: Editor):
    warm.open(LUMEN.as_uri(), LUMEN.read_text(encoding="utf-8"))
    assert await flags(warm, LUMEN) == {}


@pytest.mark.parametrize(
    "silenced",
    [
        "class NovaMLP(nn.Module):  # twinlens: ignore",
        "class NovaMLP(nn.Module):  # twinlens: ignore[similar-class]",
        "# twinlens: ignore\nclass NovaMLP(nn.Module):",
        "# Copied from transformers.models.llama.modeling_llama.LlamaMLP with Llama->Nova\nclass NovaMLP(nn.Module):",
    ],
)
async def test_a_comment_silences_the_flag(opened: Editor, nova: Path, tmp_path: Path, silenced: str):
    path = tmp_path / "modeling_nova.py"
    path.write_text(nova.read_text(encoding="utf-8").replace("class NovaMLP(nn.Module):", silenced), encoding="utf-8")
    opened.open(path.as_uri(), path.read_text(encoding="utf-8"))
    found = await flags(opened, path)
    assert "NovaMLP" not in found and "NovaAttention" in found


async def test_an_ignore_for_another_code_does_not_silence(opened: Editor, nova: Path, tmp_path: Path):
    path = tmp_path / "modeling_nova.py"
    text = nova.read_text(encoding="utf-8")
    path.write_text(
        text.replace("class NovaMLP(nn.Module):", "class NovaMLP(nn.Module):  # twinlens: ignore[no-cache]")
    )
    opened.open(path.as_uri(), path.read_text(encoding="utf-8"))
    assert "NovaMLP" in await flags(opened, path)


async def test_a_generated_file_is_left_alone(opened: Editor, small_library: Path):
    path = small_library / "mistral/modeling_mistral.py"
    opened.open(path.as_uri(), path.read_text(encoding="utf-8"))
    assert await flags(opened, path) == {}


async def test_flags_can_be_turned_off(small_library: Path, nova: Path, tmp_path: Path):
    off = {"library": [str(small_library)], "similarClasses": {"flag": False}}
    async with editor(tmp_path, off) as quiet:
        await quiet.until("ready")
        quiet.open(nova.as_uri(), nova.read_text(encoding="utf-8"))
        assert await flags(quiet, nova) == {}


async def test_the_actions_compare_inherit_and_silence(opened: Editor, nova: Path):
    found = await actions(opened, nova, (await flags(opened, nova))["NovaMLP"])
    assert list(found) == ["Compare with LlamaMLP", "Inherit from LlamaMLP in modular_nova.py", "Don't flag this class"]
    # lsprotocol reads a code action that has a command as a bare command, whose name is then the command's repr.
    command = ast.literal_eval(str(found["Inherit from LlamaMLP in modular_nova.py"].command))
    assert command["command"] == "twinlens.inheritFromMatch"
    assert command["arguments"][1] == "NovaMLP" and command["arguments"][2]["name"] == "LlamaMLP"
    edit = found["Don't flag this class"].edit
    assert edit is not None and edit.changes is not None
    (change,) = edit.changes[nova.as_uri()]
    assert change.new_text == "  # twinlens: ignore[similar-class]"


async def test_inheriting_writes_the_text_of_the_modular_file(opened: Editor, nova: Path, small_library: Path):
    parent = {"model": "llama", "name": "LlamaRMSNorm", "path": str(small_library / "llama/modeling_llama.py")}
    written = await opened.ask("twinlens/inherit", {"uri": nova.as_uri(), "name": "NovaRMSNorm", "parent": parent})
    assert written.path == str(nova.with_name("modular_nova.py"))
    assert "from ..llama.modeling_llama import LlamaRMSNorm\n" in written.text
    assert "class NovaRMSNorm(LlamaRMSNorm):\n    def forward(self, hidden_states" in written.text
    assert not nova.with_name("modular_nova.py").exists()


async def test_inheriting_extends_a_modular_file_that_is_open_and_not_saved(
    opened: Editor, nova: Path, small_library: Path
):
    modular = nova.with_name("modular_nova.py")
    opened.open(modular.as_uri(), "class NovaThing:\n    pass\n")
    parent = {"model": "llama", "name": "LlamaMLP", "path": str(small_library / "llama/modeling_llama.py")}
    written = await opened.ask("twinlens/inherit", {"uri": nova.as_uri(), "name": "NovaMLP", "parent": parent})
    assert "class NovaThing:\n    pass\n" in written.text and "class NovaMLP(LlamaMLP):" in written.text
    opened.client.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(modular.as_uri()))
    )


async def test_inheriting_into_a_modular_file_that_does_not_parse_is_one_sentence(
    opened: Editor, nova: Path, small_library: Path
):
    modular = nova.with_name("modular_nova.py")
    opened.open(modular.as_uri(), "class (\n")
    parent = {"model": "llama", "name": "LlamaMLP", "path": str(small_library / "llama/modeling_llama.py")}
    with pytest.raises(JsonRpcException, match=r"modular_nova\.py does not parse at line 1; mend it first"):
        await opened.ask("twinlens/inherit", {"uri": nova.as_uri(), "name": "NovaMLP", "parent": parent})
    opened.client.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(modular.as_uri()))
    )


async def test_a_class_text_keeps_its_names_or_hides_them(opened: Editor, nova: Path):
    asked = {"uri": nova.as_uri(), "name": "NovaMLP"}
    kept = await opened.ask("twinlens/classText", {**asked, "normalised": False})
    hidden = await opened.ask("twinlens/classText", {**asked, "normalised": True})
    assert kept.text.startswith("class NovaMLP(nn.Module):\n")
    assert hidden.text == kept.text.replace("Nova", "Model")


async def test_the_view_lists_every_definition_with_its_matches(opened: Editor, nova: Path):
    answer = await opened.ask("twinlens/similarInFile", {"uri": nova.as_uri()})
    assert answer.note is None
    assert answer.coverage.startswith("Most like llama (15 of 15, mean score 0.")
    listed = {definition.name: definition for definition in answer.definitions}
    assert listed["NovaMLP"].matches[0].name == "LlamaMLP"
    assert listed["rotate_half"].kind == "function"


async def test_a_file_without_model_code_is_said_to_be_one(opened: Editor, tmp_path: Path):
    path = tmp_path / "shop.py"
    path.write_text("class Basket:\n    pass\n")
    answer = await opened.ask("twinlens/similarInFile", {"uri": path.as_uri()})
    assert (answer.note, answer.definitions) == ("This file holds no model code.", [])


BLOCK = """class {name}Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first = nn.Linear(config.hidden_size, config.width)
        self.second = nn.Linear(config.width, config.hidden_size)

    def forward(self, hidden_states):
        return self.second({act}(self.first(hidden_states)))


"""
NORMS = {
    "alpha": """class {name}Norm(nn.Module):
    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return hidden_states * torch.rsqrt(variance + self.epsilon)
""",
    "beta": """class {name}Norm(nn.Module):
    def forward(self, hidden_states):
        mean, spread = hidden_states.mean(), hidden_states.std()
        return (hidden_states - mean) / (spread + self.epsilon) + self.bias
""",
}


async def test_a_neighbour_that_changes_may_change_the_best_match(tmp_path: Path):
    head = "import torch\nfrom torch import nn\n\n\n"
    for model, act in (("alpha", "torch.relu"), ("beta", "torch.tanh")):
        text = head + (BLOCK + NORMS[model]).replace("{act}", act).format(name=model.title())
        (tmp_path / "library" / model).mkdir(parents=True)
        (tmp_path / "library" / model / f"modeling_{model}.py").write_text(text, encoding="utf-8")
    port = tmp_path / "modeling_nova.py"
    texts = {
        model: head + (BLOCK + NORMS[model]).replace("{act}", "torch.sigmoid").format(name="Nova") for model in NORMS
    }
    port.write_text(texts["alpha"], encoding="utf-8")
    async with editor(tmp_path / "cache", {"library": [str(tmp_path / "library")]}) as asked:
        await asked.until("ready")
        asked.open(port.as_uri(), texts["alpha"])
        block = types.Range(types.Position(4, 6), types.Position(4, 6))
        best = {}
        for model in ("alpha", "beta"):
            asked.type(port.as_uri(), texts[model])
            params = types.CodeActionParams(
                types.TextDocumentIdentifier(port.as_uri()), block, types.CodeActionContext([])
            )
            best[model] = {a.title for a in await asked.client.text_document_code_action_async(params)}
        assert "Compare with AlphaBlock" in best["alpha"]
        assert "Compare with BetaBlock" in best["beta"]
