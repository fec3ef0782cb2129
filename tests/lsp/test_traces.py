"""Tracing over the protocol: lenses, the process that runs and ends, and what the view lists."""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
import time
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor, eventually
from lsprotocol import types
from pygls.exceptions import JsonRpcException

pytestmark = pytest.mark.asyncio(loop_scope="module")

LUMEN = Path(__file__).parents[1] / "samples" / "lumen"
NETS = """
    import ctypes
    import os
    import time
    import torch
    import twinlens
    from torch import nn

    class Noisy(nn.Module):
        def forward(self, x):
            print('{"jsonrpc": "2.0"}')
            ctypes.CDLL(None).puts(b"a print from C")
            return x

    class Slow(nn.Module):
        def forward(self, x):
            open("running", "w").write(str(os.getpid()))
            time.sleep(60)

    class Nan(nn.Module):
        def forward(self, x):
            return x * float("nan")

    class Raising(nn.Module):
        def forward(self, x):
            raise ValueError("wrong shape")

    def _of(module):
        return module, torch.ones(1, 2)

    @twinlens.recipe("Noisy")
    def noisy():
        return _of(Noisy())

    @twinlens.recipe("Slow")
    def slow():
        return _of(Slow())

    @twinlens.recipe("Nan")
    def nan():
        return _of(Nan())

    @twinlens.recipe("Raising")
    def raising():
        return _of(Raising())

    @twinlens.recipe()
    def unfinished():
        return {}["weights"]

    class Unknown(nn.Module):
        def __init__(self, size):
            super().__init__()

        def forward(self, hidden_states):
            return hidden_states
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    shutil.copytree(LUMEN, root / "lumen")
    recipes = root / ".twinlens" / "recipes"
    recipes.mkdir(parents=True)
    (recipes / "nets.py").write_text(textwrap.dedent(NETS))
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(workspace: Path, tmp_path_factory: pytest.TempPathFactory):
    library = tmp_path_factory.mktemp("library")
    settings = {"library": [str(library)]}
    async with editor(tmp_path_factory.mktemp("cache"), settings, folders=[workspace]) as opened:
        yield opened


async def trace(server: Editor, file: Path, name: str, **options):
    params = {"id": "1", "uri": file.as_uri(), "name": name, **options}
    return await server.ask("twinlens/trace", params, 60)


def nets(workspace: Path) -> Path:
    return workspace / ".twinlens" / "recipes" / "nets.py"


async def lenses(server: Editor, file: Path) -> list[types.CodeLens]:
    server.open(file.as_uri(), file.read_text())
    asked = types.CodeLensParams(types.TextDocumentIdentifier(file.as_uri()))
    return await server.client.text_document_code_lens_async(asked)


async def test_each_class_with_a_forward_has_two_lenses_and_its_forward_too(server: Editor, workspace: Path):
    file = workspace / "lumen" / "modeling_lumen.py"
    found = await lenses(server, file)
    lines = file.read_text().splitlines()
    mine = [lens for lens in found if lens.command.command.startswith("twinlens.trace")]
    of_mlp = [lens for lens in mine if lens.command.arguments[1] == "LumenMLP"]
    assert {lens.command.arguments[0] for lens in mine} == {file.as_uri()}
    assert [lens.command.title for lens in of_mlp] == ["Trace forward", "Trace with…"] * 2
    assert lines[of_mlp[0].range.start.line].startswith("class LumenMLP")
    assert lines[of_mlp[2].range.start.line].startswith("    def forward")
    assert "rotate_half" not in {lens.command.arguments[1] for lens in mine}


async def test_a_recipe_has_a_lens_to_run_it(server: Editor, workspace: Path):
    found = await lenses(server, nets(workspace))
    of_noisy = [lens.command.title for lens in found if lens.command.arguments[1] == "noisy"]
    assert of_noisy == ["Trace forward"]


async def test_tracing_a_class_answers_with_its_trace_and_the_view_lists_it(server: Editor, workspace: Path):
    said = []
    server.client.feature("twinlens/traceProgress")(lambda progress: said.append(progress))
    result = await trace(server, workspace / "lumen" / "modeling_lumen.py", "LumenModel")
    assert result.status == "complete", result.message
    assert result.trace.className == "LumenModel"
    assert Path(result.trace.summary).is_file()
    assert any(progress.count is not None and progress.detail.startswith("LumenModel") for progress in said)
    listed = await server.ask("twinlens/traces", {})
    assert result.trace.folder in [entry.folder for entry in listed.traces]


async def test_statistics_only_and_another_dtype_are_passed_on(server: Editor, workspace: Path):
    file = workspace / "lumen" / "modeling_lumen.py"
    result = await trace(server, file, "LumenModel", statsOnly=True, dtype="bfloat16")
    assert result.trace.dtype == "bfloat16"
    full = await trace(server, file, "LumenModel")
    assert result.trace.bytes < full.trace.bytes / 2


async def test_what_the_model_prints_comes_as_output_and_breaks_nothing(server: Editor, workspace: Path):
    printed = []
    server.client.feature("twinlens/traceOutput")(lambda output: printed.append(output.text))
    result = await trace(server, nets(workspace), "noisy")
    assert result.status == "complete"
    assert '{"jsonrpc": "2.0"}' in "".join(printed)
    assert "a print from C" in "".join(printed)


async def test_nan_in_a_trace_leaves_the_connection_whole(server: Editor, workspace: Path):
    result = await trace(server, nets(workspace), "nan")
    assert result.status == "complete"
    assert (await server.ask("twinlens/traces", {})).traces


async def test_a_forward_that_raises_answers_with_the_error_and_the_trace(server: Editor, workspace: Path):
    result = await trace(server, nets(workspace), "raising")
    assert (result.status, result.message) == ("raised", "ValueError: wrong shape")
    assert "nets.py" in result.traceback
    assert (result.trace.status, result.trace.error) == ("raised", "ValueError: wrong shape")


async def test_a_recipe_that_raises_answers_with_its_own_frames(server: Editor, workspace: Path):
    result = await trace(server, nets(workspace), "unfinished")
    assert result.status == "failed"
    assert result.message == "KeyError: 'weights', when running the recipe nets.py::unfinished."
    assert 'return {}["weights"]' in result.traceback
    assert result.trace is None


async def test_a_class_without_a_recipe_gets_a_template(server: Editor, workspace: Path):
    result = await trace(server, nets(workspace), "Unknown")
    assert result.status == "no recipe"
    asked = {"uri": nets(workspace).as_uri(), "name": "Unknown"}
    template = await server.ask("twinlens/recipeTemplate", asked)
    assert template.path == str(workspace / ".twinlens" / "recipes" / "unknown.py")
    assert "model = Unknown(size=...).eval()" in template.text


async def test_recipes_are_listed_with_what_they_are_for(server: Editor, workspace: Path):
    listed = await server.ask("twinlens/recipes", {"uri": nets(workspace).as_uri()})
    assert [(recipe.name, recipe.target) for recipe in listed.recipes][:2] == [("noisy", "Noisy"), ("slow", "Slow")]
    assert listed.folder == str(workspace / ".twinlens" / "recipes")


looks_into_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@looks_into_proc
async def test_cancelling_ends_the_process_within_two_seconds_and_keeps_what_was_recorded(
    server: Editor, workspace: Path
):
    running = workspace / "running"
    running.unlink(missing_ok=True)
    params = {"id": "9", "uri": nets(workspace).as_uri(), "name": "slow"}
    pending = asyncio.wrap_future(server.client.protocol.send_request("twinlens/trace", params, msg_id="slow"))
    await eventually(lambda: running.exists() and running.read_text() != "", 30)
    process = int(running.read_text())
    began = time.monotonic()
    server.client.cancel_request(types.CancelParams(id="slow"))
    with pytest.raises(JsonRpcException):
        await asyncio.wait_for(pending, 5)
    await eventually(lambda: not _is_alive(process), 5)
    assert time.monotonic() - began < 2
    listed = await server.ask("twinlens/traces", {})
    assert (listed.traces[0].className, listed.traces[0].status) == ("Slow", "unfinished")


def _is_alive(process: int) -> bool:
    """Whether it runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@looks_into_proc
async def test_the_process_does_not_outlive_a_server_whose_editor_is_gone(workspace: Path, tmp_path: Path):
    running = workspace / "running"
    running.unlink(missing_ok=True)
    async with editor(tmp_path / "cache", {"library": [str(tmp_path)]}, folders=[workspace]) as opened:
        params = {"id": "9", "uri": nets(workspace).as_uri(), "name": "slow"}
        opened.client.protocol.send_request("twinlens/trace", params)
        await eventually(lambda: running.exists() and running.read_text() != "", 30)
        ending = [int(running.read_text()), opened.server_process]
        opened.hang_up()
        await eventually(lambda: not any(map(_is_alive, ending)), 5)


async def test_an_interpreter_without_torch_is_told_what_to_install(workspace: Path, tmp_path: Path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    settings = {"library": [str(tmp_path)]}
    async with editor(tmp_path / "cache", settings, interpreter=str(bare), folders=[workspace]) as opened:
        result = await trace(opened, nets(workspace), "noisy")
    assert result.status == "no torch"
    assert "pip install torch" in result.message


async def test_an_interpreter_that_cannot_be_run_is_named(workspace: Path, tmp_path: Path):
    settings = {"library": [str(tmp_path)]}
    missing = str(tmp_path / "no-python")
    async with editor(tmp_path / "cache", settings, interpreter=missing, folders=[workspace]) as opened:
        result = await trace(opened, nets(workspace), "noisy")
    assert result.status == "failed"
    assert f"{missing} cannot be run" in result.message


async def test_in_restricted_mode_there_are_no_lenses_and_tracing_is_refused(workspace: Path, tmp_path: Path):
    from lsp_harness import start_session
    from pytest_lsp.client import make_test_lsp_client

    client = make_test_lsp_client()
    client.set_configuration({"twinlens": {"library": [str(tmp_path)]}})
    await client.start_io(sys.executable, "-m", "twinlens.lsp")
    options = {"interpreter": sys.executable, "cacheDir": str(tmp_path), "trusted": False}
    await start_session(client, options, [workspace])
    opened = Editor(client)
    found = await lenses(opened, workspace / "lumen" / "modeling_lumen.py")
    assert [lens for lens in found or [] if lens.command.command.startswith("twinlens.trace")] == []
    with pytest.raises(JsonRpcException, match="trust the workspace first"):
        await trace(opened, nets(workspace), "noisy")
    await client.shutdown_session()
    await client.stop()
