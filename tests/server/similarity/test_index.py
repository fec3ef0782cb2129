from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from twinlens.similarity import index as on_disk
from twinlens.similarity.build import build_index, is_current
from twinlens.similarity.contents import IndexDamagedError
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.source.library import Library, find_library


@pytest.fixture(scope="module")
def library(small_library) -> Library:
    found = find_library((), None, [small_library])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def built(library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "index"
    build_index(library, folder, DEFAULT)
    return folder


@pytest.fixture
def folder(built, tmp_path):
    """A copy of the built index that a test may damage."""
    import shutil

    return shutil.copytree(built, tmp_path / "index")


def test_the_files_are_those_of_the_upstream_detector(built):
    identifiers = json.loads((built / "code_index_map.json").read_text())
    tokens = json.loads((built / "code_index_tokens.json").read_text())
    embeddings = load_file(built / "embeddings.safetensors")["embeddings"]
    assert list(identifiers) == [str(row) for row in range(len(identifiers))]
    assert "llama/modeling_llama.py:LlamaMLP" in identifiers.values()
    assert set(tokens) == set(identifiers.values())
    assert {"class", "ModelMLP", "gate_proj", "act_fn"} <= set(tokens["llama/modeling_llama.py:LlamaMLP"])
    assert tokens["llama/modeling_llama.py:LlamaMLP"] == sorted(tokens["llama/modeling_llama.py:LlamaMLP"])
    assert embeddings.dtype == np.float32 and embeddings.shape == (len(identifiers), 256)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)


def test_what_is_written_is_what_is_read(library, built):
    index = on_disk.load(built)
    assert index.embedder == DEFAULT
    assert is_current(index, library, DEFAULT)
    mlp = next(entry for entry in index.entries if entry.identity == "llama::LlamaMLP")
    assert mlp.relative == "llama/modeling_llama.py"
    assert mlp.methods == ("__init__", "forward")


def test_a_second_build_of_the_same_library_changes_no_vector(library, folder):
    before = on_disk.load(folder)
    build_index(library, folder, DEFAULT)
    after = on_disk.load(folder)
    np.testing.assert_array_equal(before.embeddings, after.embeddings)


def test_a_changed_file_is_read_anew_and_the_others_are_not(small_library, tmp_path):
    import shutil

    copied = shutil.copytree(small_library, tmp_path / "library")
    library = find_library((), None, [copied])
    folder = tmp_path / "index"
    build_index(library, folder, DEFAULT)
    modeling = copied / "vit/modeling_vit.py"
    modeling.write_text(modeling.read_text() + "\n\nclass ViTExtra(nn.Module):\n    pass\n")
    assert not is_current(on_disk.load(folder), library, DEFAULT)
    read = []
    built = build_index(library, folder, DEFAULT, lambda progress: read.append(progress.stage))
    assert "fitting" not in read
    assert "vit::ViTExtra" in {entry.identity for entry in built.index.entries}
    assert is_current(on_disk.load(folder), library, DEFAULT)


def test_a_file_that_does_not_parse_is_named_and_the_rest_goes_on(tmp_path):
    (tmp_path / "models/good").mkdir(parents=True)
    (tmp_path / "models/bad").mkdir()
    (tmp_path / "models/good/modeling_good.py").write_text("class GoodMLP: pass\n")
    (tmp_path / "models/bad/modeling_bad.py").write_text("class BadMLP(:\n")
    library = find_library((), None, [tmp_path / "models"])
    built = build_index(library, tmp_path / "index", DEFAULT)
    assert [entry.identity for entry in built.index.entries] == ["good::GoodMLP"]
    assert len(built.problems) == 1 and "modeling_bad.py could not be read" in built.problems[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"# a line\n# another\nname = '\xff'\n", "it is not utf-8: invalid start byte at byte 27"),
        (b"\xff\xfe\n", "invalid or missing encoding declaration"),
        (b"# coding: klingon\n", "unknown encoding: klingon"),
        (b"class BadMLP(:\n", "line 1: invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_once(tmp_path, content, said):
    path = tmp_path / "models/bad/modeling_bad.py"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    built = build_index(find_library((), None, [tmp_path / "models"]), tmp_path / "index", None)
    assert built.problems == (f"{path.resolve()} could not be read: {said}",)


def test_a_file_that_no_longer_parses_keeps_what_was_known_and_is_read_again_once_it_does(tmp_path):
    path = tmp_path / "models/owl/modeling_owl.py"
    path.parent.mkdir(parents=True)
    path.write_text("class OwlMLP: pass\n")
    library = find_library((), None, [tmp_path / "models"])
    build_index(library, tmp_path / "index", DEFAULT)
    path.write_text("class OwlMLP: pass\n\n\nclass OwlWing(:\n")
    built = build_index(library, tmp_path / "index", DEFAULT)
    assert [entry.identity for entry in built.index.entries] == ["owl::OwlMLP"]
    assert "modeling_owl.py could not be read" in built.problems[0]
    assert is_current(on_disk.load(tmp_path / "index"), library, DEFAULT)
    path.write_text("class OwlMLP: pass\n\n\nclass OwlWing: pass\n")
    built = build_index(library, tmp_path / "index", DEFAULT)
    assert [entry.identity for entry in built.index.entries] == ["owl::OwlMLP", "owl::OwlWing"]


def test_without_embeddings_the_index_needs_tokens_alone(library, tmp_path):
    build_index(library, tmp_path / "index", None)
    index = on_disk.load(tmp_path / "index")
    assert index.embeddings is None and index.embedder is None
    assert not (tmp_path / "index/embeddings.safetensors").exists()


@pytest.mark.parametrize(
    "name", ["embeddings.safetensors", "code_index_map.json", "code_index_tokens.json", "definitions.json"]
)
def test_a_file_that_is_cut_short_is_named_with_the_remedy(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(IndexDamagedError, match=rf"{name} is cut short .*rebuild the index"):
        on_disk.load(folder)


def test_a_missing_file_is_named(folder):
    (folder / "code_index_tokens.json").unlink()
    with pytest.raises(IndexDamagedError, match=r"code_index_tokens.json is"):
        on_disk.load(folder)


def test_a_manifest_of_a_later_format_is_refused(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(IndexDamagedError, match="format 99"):
        on_disk.load(folder)


def test_an_index_of_an_earlier_format_is_built_anew_with_none_of_its_features(library, folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    features = load_file(folder / "features.safetensors")
    save_file({**features, "lengths": features["lengths"] + 1}, folder / "features.safetensors")
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": on_disk.FORMAT - 1, "data": {}}))
    build_index(library, folder, DEFAULT)
    assert json.loads((folder / "manifest.json").read_text())["format"] == on_disk.FORMAT
    np.testing.assert_array_equal(load_file(folder / "features.safetensors")["lengths"], features["lengths"])


def test_no_index_is_told_from_a_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        on_disk.load(tmp_path)


def test_a_damaged_index_is_rebuilt(library, folder):
    (folder / "code_index_map.json").write_text("{")
    build_index(library, folder, DEFAULT)
    assert is_current(on_disk.load(folder), library, DEFAULT)


def test_an_index_that_upstream_published_loads(tmp_path):
    save_file({"embeddings": np.eye(2, 8, dtype=np.float32)}, tmp_path / "embeddings.safetensors")
    names = ["llama/modeling_llama.py:LlamaMLP", "llama/modeling_llama.py:rotate_half"]
    (tmp_path / "code_index_map.json").write_text(json.dumps(dict(enumerate(names))))
    (tmp_path / "code_index_tokens.json").write_text(json.dumps({names[0]: ["class"], names[1]: ["def", "x"]}))
    index = on_disk.load(tmp_path)
    assert [entry.identity for entry in index.entries] == ["llama::LlamaMLP", "llama::rotate_half"]
    assert index.tokens == (frozenset({"class"}), frozenset({"def", "x"}))
    assert index.embeddings is not None and index.embeddings.shape == (2, 8)


def test_a_build_that_was_cut_off_while_writing_leaves_the_old_index(folder):
    (folder / ".next").mkdir()
    (folder / ".next/code_index_map.json").write_text("{")
    assert len(on_disk.load(folder).entries) > 100


def test_a_build_that_was_cut_off_while_moving_is_finished_by_the_next_reader(library, folder, tmp_path):
    build_index(library, tmp_path / "other", None)
    commit = folder / ".commit"
    commit.mkdir()
    for path in (tmp_path / "other").iterdir():
        if path.is_file() and path.name != ".lock":
            path.rename(commit / path.name)
    (commit / "code_index_map.json").replace(folder / "code_index_map.json")
    index = on_disk.load(folder)
    assert index.embedder is None
    assert not commit.exists()


def test_two_builds_at_once_leave_one_whole_index(library, tmp_path):
    folder = tmp_path / "index"
    with ThreadPoolExecutor(2) as pool:
        for building in [pool.submit(build_index, library, folder, DEFAULT) for _ in range(2)]:
            building.result()
    assert is_current(on_disk.load(folder), library, DEFAULT)


def test_a_folder_that_cannot_be_written_is_an_os_error_that_names_it(library, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        build_index(library, tmp_path / "file/index", None)
