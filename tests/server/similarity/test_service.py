from __future__ import annotations

import asyncio
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from twinlens.similarity.answers import query_file
from twinlens.similarity.programs import SimilaritySettings
from twinlens.similarity.service import SearchUnavailableError, SimilarityService


def settings(cache: Path, library: Path, interpreter: str = sys.executable) -> SimilaritySettings:
    return SimilaritySettings(interpreter, (str(library),), (), str(cache))


@pytest.fixture(scope="module")
def bare_interpreter(tmp_path_factory) -> str:
    """A Python with nothing installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


async def run(service_settings, *actions):
    seen = []
    service = SimilarityService(service_settings, seen.append)
    try:
        await service.start()
        results = [await action(service) for action in actions]
    finally:
        await service.stop()
    return seen, results


def search(path, name):
    async def action(service):
        return (await service.search(query_file(path.read_text(), path, "lumen"), [name]))[0]

    return action


def test_the_index_is_built_once_and_then_loaded(small_library, lumen_file, tmp_path):
    first, (answer,) = asyncio.run(run(settings(tmp_path, small_library), search(lumen_file, "LumenMLP")))
    assert first[-2].state == "ready" and first[-2].definitions > 100
    assert [status.state for status in first if status.state == "building"]
    percents = [status.percent for status in first if status.percent is not None]
    assert percents == sorted(percents)
    assert answer.ranked[0].match.jaccard > 0.5
    second, _ = asyncio.run(run(settings(tmp_path, small_library)))
    assert [status.state for status in second] == ["starting", "ready", "stopped"]


def test_an_interpreter_with_nothing_installed_compares_by_identifiers_and_names_the_remedy(
    small_library, lumen_file, tmp_path, bare_interpreter
):
    seen, (answer,) = asyncio.run(
        run(settings(tmp_path, small_library, bare_interpreter), search(lumen_file, "LumenMLP"))
    )
    assert seen[-2].state == "jaccard-only"
    assert seen[-2].remedy == f"{bare_interpreter} -m pip install numpy tokenizers safetensors faiss-cpu"
    assert answer.ranked[0].match.embedding is None and answer.ranked[0].match.jaccard > 0.5


def test_an_interpreter_that_does_not_exist_is_one_sentence(small_library, tmp_path):
    seen, _ = asyncio.run(run(settings(tmp_path, small_library, "/no/such/python")))
    assert seen[-2].state == "failed"
    assert "The Python interpreter /no/such/python cannot be started" in seen[-2].message
    assert "twinlens.interpreter" in seen[-2].message


def test_a_search_without_an_index_says_why(tmp_path, lumen_file):
    async def refused(service):
        with pytest.raises(SearchUnavailableError, match="cannot be started"):
            await service.search(query_file(lumen_file.read_text(), lumen_file, "lumen"), ["LumenMLP"])

    asyncio.run(run(settings(tmp_path, tmp_path, "/no/such/python"), refused))


def test_a_cache_folder_that_cannot_be_written_is_one_sentence(small_library, tmp_path):
    (tmp_path / "file").write_text("")
    seen, _ = asyncio.run(run(settings(tmp_path / "file", small_library)))
    assert seen[-2].state == "failed"
    assert str(tmp_path / "file") in seen[-2].message and "another folder" in seen[-2].message


def test_a_damaged_index_is_rebuilt(small_library, tmp_path):
    asyncio.run(run(settings(tmp_path, small_library)))
    (index,) = tmp_path.glob("index-*")
    (index / "code_index_tokens.json").write_text('{"cut": [')
    seen, _ = asyncio.run(run(settings(tmp_path, small_library)))
    assert "code_index_tokens.json is cut short" in " ".join(status.message for status in seen)
    assert seen[-2].state == "ready"


def test_a_rebuild_answers_from_the_old_index_until_the_new_one_is_whole(small_library, lumen_file, tmp_path):
    async def rebuild_and_search(service):
        rebuilding = asyncio.ensure_future(service.rebuild())
        while service.status.state != "building":
            await asyncio.sleep(0)
        during = await search(lumen_file, "LumenMLP")(service)
        await rebuilding
        return during

    seen, (during,) = asyncio.run(run(settings(tmp_path, small_library), rebuild_and_search))
    assert during.ranked[0].match.jaccard > 0.5
    assert seen[-2].state == "ready"


def test_stopping_during_a_build_ends_its_processes_and_keeps_the_old_index(small_library, tmp_path):
    asyncio.run(run(settings(tmp_path, small_library)))

    async def stop_while_building(service):
        rebuilding = asyncio.ensure_future(service.rebuild())
        while service.status.state != "building":
            await asyncio.sleep(0)
        await service.stop()
        await rebuilding

    asyncio.run(run(settings(tmp_path, small_library), stop_while_building))
    (index,) = tmp_path.glob("index-*")
    left = subprocess.run(["pgrep", "-f", str(index)], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    seen, _ = asyncio.run(run(settings(tmp_path, small_library)))
    assert [status.state for status in seen] == ["starting", "ready", "stopped"]


def test_a_question_that_fails_does_not_end_the_worker(small_library, lumen_file, tmp_path):
    async def ask_twice(service):
        query = query_file(lumen_file.read_text(), lumen_file, "lumen")
        with pytest.raises(SearchUnavailableError, match="Nothing"):
            await service.search(query, ["Nothing"])
        return (await service.search(query, ["LumenMLP"]))[0]

    _, (answer,) = asyncio.run(run(settings(tmp_path, small_library), ask_twice))
    assert answer.ranked
