from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from twinlens.similarity import index as on_disk
from twinlens.similarity.embedder import LibraryEmbedder, SentenceTransformerEmbedder

COMMAND = [sys.executable, "-c", "from twinlens.cli import main; main()", "detect"]


def detect(*arguments, cwd=None):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def index(small_library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("detect") / "index"
    done = detect("--build", "--library", small_library, "--index", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_matches_are_printed_as_the_upstream_detector_prints_them(small_library, lumen_file, index):
    done = detect("--modeling-file", lumen_file, "--library", small_library, "--index", index)
    lines = done.stdout.splitlines()
    start = lines.index("modeling_lumen.py::LumenMLP:")
    assert lines[start + 1] == "  embedding:"
    assert lines[start + 2].startswith("    ") and lines[start + 2].endswith(")")
    assert "  jaccard:" in lines[start:] and "  intersection:" in lines[start:]
    assert done.returncode == 0


def test_json_holds_both_scores_and_the_ranking(small_library, lumen_file, index):
    done = detect("--modeling-file", lumen_file, "--library", small_library, "--index", index, "--json", "-")
    answer = json.loads(done.stdout)["modeling_lumen.py::LumenMLP"]
    assert set(answer) == {"embedding", "jaccard", "intersection", "ranked"}
    assert set(answer["ranked"][0]) == {"match", "score", "embedding", "jaccard", "twins", "ancestors"}
    identity, score = answer["jaccard"][0]
    assert "::" in identity and 0.5 < score < 1


def test_top_k_and_a_json_file(small_library, lumen_file, index, tmp_path):
    target = tmp_path / "matches.json"
    arguments = ("--modeling-file", lumen_file, "--library", small_library, "--index", index)
    detect(*arguments, "--top-k", "2", "--json", target)
    assert len(json.loads(target.read_text())["modeling_lumen.py::LumenMLP"]["jaccard"]) == 2


def test_a_folder_stands_for_every_modeling_file_in_it(small_library, lumen_file, index):
    done = detect("--modeling-file", lumen_file.parent, "--library", small_library, "--index", index, "--json", "-")
    assert "modeling_lumen.py::LumenAttention" in json.loads(done.stdout)


def test_the_report_ends_with_the_models_that_cover_most(small_library, index, tmp_path):
    path = tmp_path / "modeling_nova.py"
    path.write_text((small_library / "mistral/modeling_mistral.py").read_text().replace("Mistral", "Nova"))
    done = detect("--modeling-file", path, "--library", small_library, "--index", index)
    summary = done.stdout[done.stdout.index("modeling_nova.py, by model:") :].splitlines()
    assert summary[1].startswith("  mistral covers ") and "with a mean score of 0." in summary[1]
    assert "NovaAttention" in summary[2]


def test_models_newer_than_a_date_are_left_out(small_library, lumen_file, index):
    arguments = ("--modeling-file", lumen_file, "--library", small_library, "--index", index, "--json", "-")
    done = detect(*arguments, "--before", "2019-01-01")
    answer = json.loads(done.stdout)["modeling_lumen.py::LumenMLP"]
    models = {identity.partition("::")[0] for identity, _ in answer["jaccard"]}
    # Mistral's file claims no copyright: a model of unknown date stays.
    assert models == {"bert", "mistral", "roberta"}
    assert done.stderr == "--before 2019-01-01: 1 model whose date is unknown was kept: mistral\n"


def test_the_second_run_builds_nothing(small_library, lumen_file, index):
    done = detect("--modeling-file", lumen_file, "--library", small_library, "--index", index)
    assert done.stderr == ""


@pytest.mark.parametrize("content", ["", "# Copyright\n", "import torch\n\nWIDTH = 3\n"])
def test_a_file_without_definitions_is_named_and_the_others_are_answered(
    small_library, lumen_file, index, tmp_path, content
):
    path = tmp_path / "modeling_empty.py"
    path.write_text(content)
    files = ("--modeling-file", path, "--modeling-file", lumen_file)
    done = detect(*files, "--library", small_library, "--index", index, "--json", "-")
    assert (done.returncode, done.stderr) == (0, f"{path} holds no class and no function to compare\n")
    assert "modeling_lumen.py::LumenMLP" in json.loads(done.stdout)


def test_a_notebook_is_refused_with_what_to_do(small_library, index, tmp_path):
    path = tmp_path / "port.ipynb"
    path.write_text('{"cells": []}')
    done = detect("--modeling-file", path, "--library", small_library, "--index", index)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path} is a notebook; export its code first: jupyter nbconvert --to script {path}" in done.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"class A(:\n", "does not parse at line 1"),
        ("é = 'é'\n".encode("latin-1"), "does not parse"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_one_sentence(small_library, index, tmp_path, content, sentence):
    path = tmp_path / "modeling_wrong.py"
    path.write_bytes(content)
    done = detect("--modeling-file", path, "--library", small_library, "--index", index)
    assert done.returncode == 2
    assert str(path) in done.stderr and sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_file_of_a_folder_that_cannot_be_parsed_is_named_and_the_others_are_answered(
    small_library, lumen_file, index, tmp_path
):
    folder = tmp_path / "port"
    folder.mkdir()
    (folder / "modeling_wrong.py").write_text("class A(:\n")
    shutil.copy(lumen_file, folder)
    done = detect("--modeling-file", folder, "--library", small_library, "--index", index, "--json", "-")
    assert (done.returncode, done.stderr) == (
        0,
        f"{folder / 'modeling_wrong.py'} does not parse at line 1: invalid syntax\n",
    )
    assert "modeling_lumen.py::LumenMLP" in json.loads(done.stdout)


def test_a_class_in_a_class_or_in_a_function_has_no_block_of_its_own(small_library, index, tmp_path):
    path = tmp_path / "modeling_nested.py"
    path.write_text(
        "class OwlOuter(nn.Module):\n    class Inner:\n        pass\n\n\n"
        "def build():\n    class Local: ...\n    return Local\n"
    )
    done = detect("--modeling-file", path, "--library", small_library, "--index", index, "--json", "-")
    assert done.returncode == 0
    assert list(json.loads(done.stdout)) == ["modeling_nested.py::OwlOuter", "modeling_nested.py::build"]


def test_two_workers_that_share_the_encoding_give_the_rows_of_one(small_library, tmp_path):
    embedder = tmp_path / "embedder"
    texts = ["class ModelMLP(nn.Module):", "hidden_states = self.proj(hidden_states)", "return torch.cat(parts)"] * 9
    LibraryEmbedder.fit(texts).save(embedder)
    library = tmp_path / "library"
    shutil.copytree(small_library / "llama", library / "llama")
    done = detect("--build", "--library", library, "--embedder", embedder, "--devices", "cpu,cpu", "--index", tmp_path)
    assert done.returncode == 0, done.stderr
    index = on_disk.load(tmp_path)
    alone = SentenceTransformerEmbedder(str(embedder)).encode([entry.sanitised for entry in index.entries])
    np.testing.assert_allclose(index.embeddings, alone, atol=1e-6)


def test_an_empty_file_has_no_blocks(small_library, index, tmp_path):
    path = tmp_path / "modeling_empty.py"
    path.write_text("")
    done = detect("--modeling-file", path, "--library", small_library, "--index", index)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--modeling-file"),
        (("--modeling-file", "nowhere.py"), "nowhere.py cannot be read"),
        (("--modeling-file", "."), "holds no modeling_*.py file"),
        (("--build", "--library", "nowhere"), "nowhere is no folder"),
        (("--build", "--before", "spring"), "--before spring is no date"),
        (("--build", "--before", ""), "--before  is no date"),
        (("--build", "--library", "empty"), "empty holds no modeling_*.py file; name a folder of models"),
        (("--modeling-file", "notes.txt"), "notes.txt is no Python file; name a modeling file"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments, sentence, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hi\n")
    done = detect(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_truncated_index_is_named_with_its_remedy(small_library, lumen_file, index, tmp_path):
    folder = shutil.copytree(index, tmp_path / "index")
    (folder / "embeddings.safetensors").write_bytes(b"short")
    done = detect("--modeling-file", lumen_file, "--library", small_library, "--index", folder)
    assert done.returncode == 2
    assert "embeddings.safetensors is cut short" in done.stderr and "--build" in done.stderr
