"""A library file is saved: the next answer is by what it holds now, and the index on disk follows."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLE = Path(__file__).parents[1] / "samples" / "lumen" / "modeling_lumen.py"
URI = SAMPLE.as_uri()
TEXT = SAMPLE.read_text(encoding="utf-8")
PROBE = (
    "class OwlFlight(nn.Module):\n"
    "    def __init__(self, config):\n"
    "        super().__init__()\n"
    "        self.left_wing = nn.Linear(config.feathers, config.span)\n"
    "        self.right_wing = nn.Linear(config.feathers, config.span)\n\n"
    "    def forward(self, air):\n"
    "        return self.left_wing(air) - self.right_wing(air)\n"
)
ASKED = f"import torch.nn as nn\n\n\n{PROBE}"
ASKED_URI = "file:///owl/modeling_owl.py"


@pytest_asyncio.fixture(loop_scope="module")
async def opened(small_library: Path, tmp_path: Path):
    """An editor whose library is a folder that may be written."""
    shutil.copytree(small_library, tmp_path / "library")
    async with editor(tmp_path / "cache", {"library": [str(tmp_path / "library")]}) as ready:
        await ready.until("ready")
        ready.open(URI, TEXT)
        ready.open(ASKED_URI, ASKED)
        yield ready


@pytest.fixture
def mistral(tmp_path: Path) -> Path:
    return tmp_path / "library" / "mistral" / "modeling_mistral.py"


def save(opened: Editor, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    opened.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri())))


def changed_outside(opened: Editor, path: Path, how: types.FileChangeType = types.FileChangeType.Changed) -> None:
    change = types.FileEvent(path.as_uri(), how)
    opened.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))


async def best(opened: Editor, uri: str = ASKED_URI, text: str = ASKED, name: str = "OwlFlight"):
    line = text[: text.index(f"class {name}")].count("\n")
    found = await opened.ask("twinlens/similarClasses", {"uri": uri, "position": {"line": line, "character": 7}})
    return found.matches


async def test_a_class_that_was_written_into_the_library_and_saved_is_in_the_next_hover(opened: Editor, mistral: Path):
    assert "MistralFlight" not in await opened.hover_on(ASKED_URI, ASKED, "OwlFlight")
    text = mistral.read_text(encoding="utf-8") + "\n\n" + PROBE.replace("Owl", "Mistral")
    save(opened, mistral, text)
    line = 1 + text.split("\n").index("class MistralFlight(nn.Module):")
    hover = await opened.hover_on(ASKED_URI, ASKED, "OwlFlight")
    row = f"| [MistralFlight]({mistral.resolve().as_uri()}#L{line}) ✓&ensp; | mistral&ensp; | 1.00&ensp; | 1.00 |"
    assert row in hover
    assert opened.statuses[-1].state == "ready"


async def test_a_class_that_moved_down_is_linked_where_it_stands_now(opened: Editor, mistral: Path):
    text = "# one line more\n" + mistral.read_text(encoding="utf-8")
    save(opened, mistral, text)
    line = 1 + text.split("\n").index("class MistralMLP(nn.Module):")
    matches = await best(opened, URI, TEXT, "LumenMLP")
    assert line in [match.line for match in matches if match.name == "MistralMLP"]


async def test_a_changed_class_is_no_longer_a_twin_and_a_deleted_one_is_gone(opened: Editor, mistral: Path):
    llama = mistral.parents[1] / "llama" / "modeling_llama.py"
    text = llama.read_text(encoding="utf-8").replace("Llama", "Nova")
    opened.open("file:///nova/modeling_nova.py", text)

    async def norm():
        found = await best(opened, "file:///nova/modeling_nova.py", text, "NovaRMSNorm")
        return {match.model: match.twins for match in found if match.name.endswith("RMSNorm")}

    assert (await norm())["llama"] == ["mistral::MistralRMSNorm"]
    before = mistral.read_text(encoding="utf-8")
    weighted = "self.weight * hidden_states.to(input_dtype)"
    save(opened, mistral, before.replace(weighted, "hidden_states.to(input_dtype) * self.weight"))
    twins = await norm()
    assert twins["llama"] == [] and twins["mistral"] == []
    start, end = before.index("@use_kernel_forward_from_hub"), before.index("class MistralRotaryEmbedding")
    save(opened, mistral, before[:start] + before[end:])
    assert "mistral" not in await norm()
    save(opened, mistral, before)
    assert (await norm())["llama"] == ["mistral::MistralRMSNorm"]


async def test_a_modular_file_that_is_saved_brings_the_lineage_with_it(opened: Editor, mistral: Path):
    text = mistral.read_text(encoding="utf-8") + "\n\n" + PROBE.replace("Owl", "Mistral")
    save(opened, mistral, text)
    gemma = mistral.parents[1] / "gemma2" / "modeling_gemma2.py"
    child = PROBE.replace("Owl", "Gemma2").replace("return ", "return 2 * ")
    save(opened, gemma, gemma.read_text(encoding="utf-8") + "\n\n" + child)
    assert [match.ancestors for match in await best(opened) if match.name == "Gemma2Flight"] == [[]]
    modular = gemma.with_name("modular_gemma2.py")
    said = "from ..mistral.modeling_mistral import MistralFlight\n\n\nclass Gemma2Flight(MistralFlight):\n    pass\n"
    save(opened, modular, f"{modular.read_text(encoding='utf-8')}\n\n{said}")
    found = {match.name: match.ancestors for match in await best(opened)}
    assert found["Gemma2Flight"] == ["mistral::MistralFlight"]


async def test_a_file_that_no_longer_parses_keeps_its_classes(opened: Editor, mistral: Path):
    text = mistral.read_text(encoding="utf-8") + "\n\n" + PROBE.replace("Owl", "Mistral")
    save(opened, mistral, text)
    assert (await best(opened))[0].name == "MistralFlight"
    save(opened, mistral, text + "\n\nclass Broken(:\n")
    assert (await best(opened))[0].name == "MistralFlight"
    mistral.write_bytes(b"\xff\xfe\x00")
    changed_outside(opened, mistral)
    assert (await best(opened))[0].name == "MistralFlight"


async def test_files_made_changed_and_deleted_outside_of_the_editor_count(opened: Editor, mistral: Path):
    new = mistral.parents[1] / "heron" / "modeling_heron.py"
    new.parent.mkdir()
    new.write_text("import torch.nn as nn\n\n\n" + PROBE.replace("Owl", "Heron"))
    changed_outside(opened, new)
    assert (await best(opened))[0].model == "heron"
    new.unlink()
    changed_outside(opened, new)
    assert "heron" not in [match.model for match in await best(opened)]


async def test_the_editor_is_asked_to_tell_of_folders_too(opened: Editor):
    (asked,) = [found for found in opened.registrations if found.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES]
    watchers = {watcher["globPattern"]: watcher["kind"] for watcher in asked.register_options["watchers"]}
    assert watchers == {
        "**/*.py": types.WatchKind.Change,
        "**/*": types.WatchKind.Create | types.WatchKind.Delete,
    }


async def test_a_folder_that_is_moved_or_deleted_brings_and_takes_its_files(
    opened: Editor, mistral: Path, tmp_path: Path
):
    elsewhere, inside = tmp_path / "heron", mistral.parents[1] / "heron"
    elsewhere.mkdir()
    (elsewhere / "modeling_heron.py").write_text("import torch.nn as nn\n\n\n" + PROBE.replace("Owl", "Heron"))
    elsewhere.rename(inside)
    changed_outside(opened, inside, types.FileChangeType.Created)
    assert (await best(opened))[0].model == "heron"
    shutil.rmtree(inside)
    changed_outside(opened, inside, types.FileChangeType.Deleted)
    assert "heron" not in [match.model for match in await best(opened)]
    shutil.rmtree(mistral.parent)
    changed_outside(opened, mistral.parent, types.FileChangeType.Deleted)
    assert "mistral" not in [match.model for match in await best(opened, URI, TEXT, "LumenMLP")]


async def test_a_file_outside_of_the_library_changes_nothing(opened: Editor, tmp_path: Path):
    seen = len(opened.statuses)
    other = tmp_path / "modeling_elsewhere.py"
    save(opened, other, ASKED)
    assert "elsewhere" not in [match.model for match in await best(opened)]
    assert len(opened.statuses) == seen


async def test_the_index_on_disk_follows_and_two_editors_do_not_hinder_each_other(
    opened: Editor, mistral: Path, tmp_path: Path
):
    async with editor(tmp_path / "cache", {"library": [str(tmp_path / "library")]}) as second:
        await second.until("ready")
        second.open(ASKED_URI, ASKED)
        save(opened, mistral, mistral.read_text(encoding="utf-8") + "\n\n" + PROBE.replace("Owl", "Mistral"))
        changed_outside(second, mistral)
        assert (await best(opened))[0].name == (await best(second))[0].name == "MistralFlight"
        (index,) = (tmp_path / "cache").glob("index-*")
        async with asyncio.timeout(60):
            while "mistral/modeling_mistral.py:MistralFlight" not in _identifiers(index):
                await asyncio.sleep(0.1)
        assert (await best(opened))[0].name == (await best(second))[0].name == "MistralFlight"
    async with editor(tmp_path / "cache", {"library": [str(tmp_path / "library")]}) as third:
        await third.until("ready")
        assert [status.state for status in third.statuses] == ["starting", "ready"]
        third.open(ASKED_URI, ASKED)
        assert (await best(third))[0].name == "MistralFlight"


def _identifiers(index: Path) -> list[str]:
    if (index / ".commit").exists() or not (index / "code_index_map.json").exists():
        return []
    return list(json.loads((index / "code_index_map.json").read_text()).values())
