"""Who has written this class already, asked over the protocol, with a library of a few real models."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import venv
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor, eventually
from lsprotocol import types
from pygls.exceptions import JsonRpcException

pytestmark = pytest.mark.asyncio(loop_scope="module")

looks_into_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")

SAMPLE = Path(__file__).parents[1] / "samples" / "lumen" / "modeling_lumen.py"
URI = SAMPLE.as_uri()
TEXT = SAMPLE.read_text(encoding="utf-8")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warm(small_library: Path, tmp_path_factory: pytest.TempPathFactory):
    """A server whose index is ready."""
    async with editor(tmp_path_factory.mktemp("cache"), {"library": [str(small_library)]}) as opened:
        await opened.until("ready")
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def lumen(warm: Editor):
    warm.open(URI, TEXT)
    return warm


async def test_hover_on_a_class_lists_real_classes_with_both_scores_and_a_link(lumen: Editor, small_library: Path):
    markdown = await lumen.hover_on(URI, TEXT, "LumenMLP")
    assert markdown.startswith("| Similar to LumenMLP&ensp; | Model&ensp; | Embedding&ensp; | Jaccard |\n")
    path = small_library.resolve() / "llama" / "modeling_llama.py"
    line = 1 + path.read_text(encoding="utf-8").split("\n").index("class LlamaMLP(nn.Module):")
    assert f"[LlamaMLP]({path.as_uri()}#L{line}) ✓&ensp; | llama" in markdown


async def test_hover_answers_on_a_base_class_and_on_a_use(lumen: Editor):
    text = TEXT + "\n\nclass LumenWideMLP(LumenMLP):\n    pass\n\n\nmlp = LumenMLP(None)\n"
    lumen.type(URI, text)
    on_base = await lumen.hover_on(URI, text, "LumenMLP):\n    pass")
    on_use = await lumen.hover_on(URI, text, "LumenMLP(None)")
    assert on_base.startswith("| Similar to LumenMLP&ensp; |")
    assert on_use == on_base


async def test_hover_answers_on_a_module_level_function(lumen: Editor):
    assert (await lumen.hover_on(URI, TEXT, "rotate_half")).startswith("| Similar to rotate_half&ensp; |")


async def test_hover_is_quiet_where_there_is_nothing_to_say(lumen: Editor):
    assert await lumen.hover_on(URI, TEXT, "forward") == ""
    assert await lumen.hover_on(URI, TEXT, "import math") == ""
    plain = "class Basket:\n    def total(self):\n        return 3\n"
    lumen.open("file:///shop.py", plain)
    assert await lumen.hover_on("file:///shop.py", plain, "Basket") == ""


async def test_hover_is_quiet_on_an_attribute_and_a_method_that_bear_a_functions_name(lumen: Editor):
    text = TEXT + "\n\nclass LumenTurn(nn.Module):\n    def rotate_half(self):\n        return self.rotate_half\n"
    lumen.type(URI, text)
    assert await lumen.hover_on(URI, text, "rotate_half(self)") == ""
    assert await lumen.hover_on(URI, text, "rotate_half\n") == ""


async def test_hover_follows_text_that_is_not_saved(lumen: Editor):
    text = TEXT.replace("LumenMLP", "LumenFeedForward")
    lumen.type(URI, text)
    assert (await lumen.hover_on(URI, text, "LumenFeedForward")).startswith("| Similar to LumenFeedForward&ensp; |")


async def test_hover_answers_from_the_last_text_that_parsed_though_nobody_asked_then(lumen: Editor):
    await asyncio.sleep(0.5)  # as long as a person looks at a file before typing
    text = TEXT.replace("def forward(self, x):", "def forward(self, x:")
    lumen.type(URI, text)
    assert "LlamaMLP" in await lumen.hover_on(URI, text, "LumenMLP")


async def test_of_a_file_that_was_broken_when_it_was_opened_the_whole_classes_are_answered(lumen: Editor):
    text = "class Unfinished(nn.Module:\n    pass\n\n" + TEXT
    lumen.open("file:///lumen/modeling_unfinished.py", text)
    assert "LlamaMLP" in await lumen.hover_on("file:///lumen/modeling_unfinished.py", text, "LumenMLP")


async def test_columns_are_right_after_accents_and_emoji(lumen: Editor):
    text = TEXT + '\n\nnames = {"é🤗é": LumenMLP, "🤗": LumenAttention}\n'
    lumen.type(URI, text)
    line = text.split("\n").index('names = {"é🤗é": LumenMLP, "🤗": LumenAttention}')
    assert (await lumen.hover(URI, line, 17)).startswith("| Similar to LumenMLP&ensp; |")
    assert (await lumen.hover(URI, line, 24)).startswith("| Similar to LumenMLP&ensp; |")
    assert (await lumen.hover(URI, line, 33)).startswith("| Similar to LumenAttention&ensp; |")
    assert await lumen.hover(URI, line, 30) == ""


async def test_the_querys_own_model_is_left_out(warm: Editor, small_library: Path):
    path = small_library.resolve() / "llama" / "modeling_llama.py"
    text = path.read_text(encoding="utf-8")
    warm.open(path.as_uri(), text)
    markdown = await warm.hover_on(path.as_uri(), text, "LlamaMLP")
    assert "MistralMLP" in markdown
    assert "| llama" not in markdown


async def test_the_quick_pick_takes_the_class_around_the_cursor(lumen: Editor):
    inside = TEXT.split("\n").index("        self.act_fn = nn.SiLU()")
    result = await lumen.ask("twinlens/similarClasses", {"uri": URI, "position": {"line": inside, "character": 12}})
    assert result.definition == "LumenMLP"
    assert result.note is None
    first = result.matches[0]
    assert first.name in ("LlamaMLP", "MistralMLP", "Gemma2MLP")
    assert Path(first.path).is_file()
    assert 0.5 < first.jaccard <= 1
    assert first.score == max(match.score for match in result.matches)


async def test_the_quick_pick_says_when_the_cursor_is_in_no_class(lumen: Editor):
    result = await lumen.ask("twinlens/similarClasses", {"uri": URI, "position": {"line": 1, "character": 0}})
    assert (result.definition, result.note, result.matches) == (None, "The cursor is in no class or function.", [])


async def test_the_quick_pick_of_a_file_that_never_parsed_is_refused_with_its_name(warm: Editor):
    warm.open("file:///lumen/broken.py", "class Broken(:\n")
    with pytest.raises(JsonRpcException, match=r"^broken\.py does not parse"):
        await warm.ask(
            "twinlens/similarClasses", {"uri": "file:///lumen/broken.py", "position": {"line": 0, "character": 7}}
        )


@pytest.mark.parametrize("text", ["", "\ufeff", "\x00", "class A(:\n", "é" * 10, "(" * 5000])
async def test_a_file_that_is_empty_or_does_not_parse_has_no_hover_and_breaks_nothing(lumen: Editor, text: str):
    lumen.open("file:///lumen/odd.py", text)
    assert await lumen.hover("file:///lumen/odd.py", 0, 0) == ""
    lumen.type(URI, TEXT)
    assert (await lumen.hover_on(URI, TEXT, "LumenMLP")).startswith("| Similar to LumenMLP&ensp; |")


async def test_a_file_of_20000_lines_is_answered_and_others_meanwhile(lumen: Editor):
    lumen.type(URI, TEXT)
    copies = [TEXT.replace("Lumen", f"Lumen{number}") for number in range(1 + 20_000 // TEXT.count("\n"))]
    text = "\n".join(copies)
    assert text.count("\n") >= 20_000
    lumen.open("file:///lumen/modeling_huge.py", text)
    huge, small = await asyncio.gather(
        lumen.hover_on("file:///lumen/modeling_huge.py", text, "Lumen7MLP"), lumen.hover_on(URI, TEXT, "LumenMLP")
    )
    assert huge.startswith("| Similar to Lumen7MLP&ensp; |")
    assert small.startswith("| Similar to LumenMLP&ensp; |")


async def test_a_file_in_latin_1_is_read_by_the_coding_it_declares(warm: Editor, tmp_path: Path):
    path = tmp_path / "modeling_lumen.py"
    path.write_bytes(("# -*- coding: latin-1 -*-\n# Modèle\n" + TEXT).encode("latin-1"))
    result = await warm.ask(
        "twinlens/similarClasses",
        {"uri": path.as_uri(), "position": {"line": 2 + TEXT[: TEXT.index("LumenMLP")].count("\n"), "character": 8}},
    )
    assert result.definition == "LumenMLP"


async def test_a_rebuild_ends_with_the_index_ready(warm: Editor):
    await warm.ask("twinlens/rebuildIndex", {}, seconds=60)
    assert warm.statuses[-1].state == "ready"
    assert {status.state for status in warm.statuses} >= {"building", "ready"}


async def test_while_the_index_is_built_hover_says_so_and_then_answers(small_library: Path, tmp_path: Path):
    async with editor(tmp_path, {"library": [str(small_library)]}) as cold:
        cold.open(URI, TEXT)
        await cold.until("building")
        assert re.search(r" \(\d+ %\)\.\*", await cold.hover_on(URI, TEXT, "LumenMLP"))
        await cold.until("ready")
        assert "LlamaMLP" in await cold.hover_on(URI, TEXT, "LumenMLP")


async def test_an_interpreter_that_does_not_exist_is_named_with_the_remedy(small_library: Path, tmp_path: Path):
    async with editor(tmp_path, {"library": [str(small_library)]}, interpreter="/gone/python") as broken:
        status = await broken.until("failed")
        assert status.message == (
            "The Python interpreter /gone/python cannot be started (No such file or directory); choose another one in "
            "the setting twinlens.interpreter."
        )
        broken.open(URI, TEXT)
        assert "/gone/python" in await broken.hover_on(URI, TEXT, "LumenMLP")


async def test_an_interpreter_without_packages_gives_jaccard_matches_and_names_the_command(
    small_library: Path, tmp_path: Path
):
    venv.create(tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python")
    async with editor(tmp_path, {"library": [str(small_library)]}, interpreter=bare) as lacking:
        status = await lacking.until("jaccard-only")
        assert status.remedy == f"{bare} -m pip install numpy tokenizers safetensors faiss-cpu"
        lacking.open(URI, TEXT)
        markdown = await lacking.hover_on(URI, TEXT, "LumenMLP")
        assert markdown.startswith("| Similar to LumenMLP&ensp; | Model&ensp; | Jaccard |\n")
        assert "[LlamaMLP](file:" in markdown
        assert f"`{status.remedy}`" in markdown


async def test_a_changed_library_setting_brings_another_index(small_library: Path, tmp_path: Path):
    async with editor(tmp_path, {"library": [str(small_library / "bert")]}) as moving:
        first = await moving.until("ready")
        moving.client.set_configuration({"twinlens": {"library": [str(small_library)]}})
        moving.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
        await moving.until("building")
        second = await moving.until("ready")
        assert second.definitions > first.definitions


async def test_a_saved_library_file_is_known_at_once_and_a_deleted_one_no_more(small_library: Path, tmp_path: Path):
    library = tmp_path / "library"
    shutil.copytree(small_library, library)
    llama = library / "llama" / "modeling_llama.py"
    async with editor(tmp_path / "cache", {"library": [str(library)]}) as asked:
        await asked.until("ready")
        asked.open(URI, TEXT)
        text = llama.read_text(encoding="utf-8").replace("LlamaMLP", "LlamaFeedForward")
        asked.open(llama.as_uri(), text)
        llama.write_text(text, encoding="utf-8")
        asked.client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(llama.as_uri()))
        )
        statuses = len(asked.statuses)
        await eventually(lambda: len(asked.statuses) > statuses, 10)
        assert "[LlamaFeedForward]" in await asked.hover_on(URI, TEXT, "LumenMLP")
        llama.unlink()
        gone = types.FileEvent(llama.as_uri(), types.FileChangeType.Deleted)
        statuses = len(asked.statuses)
        asked.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([gone]))
        await eventually(lambda: len(asked.statuses) > statuses, 10)
        assert "LlamaFeedForward" not in await asked.hover_on(URI, TEXT, "LumenMLP")


async def test_of_two_folders_the_one_that_is_a_checkout_is_the_library(small_library: Path, tmp_path: Path):
    checkout = tmp_path / "transformers"
    models = checkout / "src" / "transformers" / "models"
    shutil.copytree(small_library, models)
    (models.parent / "__init__.py").write_text('__version__ = "5.99.0.dev0"\n')
    async with editor(tmp_path, {}, folders=[SAMPLE.parents[1], checkout]) as opened:
        status = await opened.until("ready")
        assert status.library == "transformers 5.99.0.dev0"
        opened.open(URI, TEXT)
        assert f"[LlamaMLP]({models.as_uri()}/llama/modeling_llama.py#L" in await opened.hover_on(URI, TEXT, "LumenMLP")


@looks_into_proc
async def test_a_worker_that_is_killed_is_named_and_comes_back(small_library: Path, tmp_path: Path):
    async with editor(tmp_path, {"library": [str(small_library)]}) as wounded:
        await wounded.until("ready")
        wounded.open(URI, TEXT)
        assert "LlamaMLP" in await wounded.hover_on(URI, TEXT, "LumenMLP")
        for child in _children(wounded.server_process):
            os.kill(child, signal.SIGKILL)
        assert await wounded.hover_on(URI, TEXT, "LumenMLP") == (
            "*The similarity process ended with code -9. It is being started again.*"
        )
        await wounded.until("starting")
        await wounded.until("ready")
        assert "LlamaMLP" in await wounded.hover_on(URI, TEXT, "LumenMLP")


@looks_into_proc
async def test_no_process_outlives_the_server(small_library: Path, tmp_path: Path):
    async with editor(tmp_path, {"library": [str(small_library)]}) as ended:
        await ended.until("building")
        mark = str(tmp_path)
        await eventually(lambda: bool(_processes(mark)), 5)
    await eventually(lambda: not _processes(mark), 2)


@looks_into_proc
async def test_the_server_and_its_processes_end_with_their_client(small_library: Path, tmp_path: Path):
    async with editor(tmp_path, {"library": [str(small_library)]}) as left:
        await left.until("ready")
        ending = [left.server_process, *_children(left.server_process)]
        assert len(ending) == 2
        left.hang_up()
        await eventually(lambda: not any(map(_runs, ending)), 3)


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _runs(process: int) -> bool:
    """Whether it runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _processes(mark: str) -> list[str]:
    """Running processes that have `mark` on their command line."""
    lines = (place / "cmdline" for place in Path("/proc").iterdir() if place.name.isdigit())
    return [line for line in map(_command_line, lines) if mark in line]


def _command_line(place: Path) -> str:
    try:
        return place.read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
