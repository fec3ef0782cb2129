from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

COMMAND = [sys.executable, "-c", "from twinlens.cli import main; main()", "detect"]
DATASET = "someone/index"


def load_stand_in():
    path = Path(__file__).with_name("hub_stand_in.py")
    spec = importlib.util.spec_from_file_location("hub_stand_in", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub():
    with load_stand_in().running_hub() as running:
        yield running


@pytest.fixture(scope="module")
def built(small_library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "index"
    done = subprocess.run([*COMMAND, "--build", "--library", str(small_library), "--index", str(folder)], check=False)
    assert done.returncode == 0
    return folder


@pytest.fixture
def detect(hub, small_library, tmp_path):
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_stand_in"}

    def run(index, *arguments):
        command = [*COMMAND, "--library", str(small_library), "--index", str(index), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    return run


def test_what_was_pushed_is_pulled(hub, detect, built, lumen_file, tmp_path):
    pushed = detect(built, "--push-new-index", "--hub-dataset", DATASET)
    assert pushed.returncode == 0, pushed.stderr
    names = set(hub.datasets[DATASET])
    assert {"embeddings.safetensors", "code_index_map.json", "code_index_tokens.json", "manifest.json"} <= names
    assert not [name for name in names if name.startswith(".")]
    pulled = detect(tmp_path / "index", "--hub-dataset", DATASET, "--modeling-file", str(lumen_file), "--json", "-")
    assert pulled.returncode == 0, pulled.stderr
    assert f"pulled from {DATASET}" in pulled.stderr and "reading the library" not in pulled.stderr
    assert pulled.stdout == detect(built, "--modeling-file", str(lumen_file), "--json", "-").stdout


def test_an_index_that_upstream_published_is_pulled(hub, detect, tmp_path):
    names = ["llama/modeling_llama.py:LlamaMLP", "llama/modeling_llama.py:rotate_half"]
    hub.datasets[DATASET] = {
        "embeddings.safetensors": save({"embeddings": np.eye(2, 8, dtype=np.float32)}),
        "code_index_map.json": json.dumps(dict(enumerate(names))).encode(),
        "code_index_tokens.json": json.dumps({names[0]: ["class"], names[1]: ["def"]}).encode(),
    }
    done = detect(tmp_path / "index", "--hub-dataset", DATASET)
    assert done.returncode == 0, done.stderr
    assert list(json.loads((tmp_path / "index/code_index_map.json").read_text()).values()) == names


@pytest.mark.parametrize("name", ["embeddings.safetensors", "code_index_map.json", "definitions.json"])
def test_a_partial_download_is_refused_and_the_local_index_stays(hub, detect, built, tmp_path, name):
    files = {path.relative_to(built).as_posix(): path.read_bytes() for path in built.rglob("*") if path.is_file()}
    hub.datasets[DATASET] = {file: content for file, content in files.items() if not file.startswith(".")}
    hub.cut.add(name)
    local = shutil.copytree(built, tmp_path / "index")
    done = detect(local, "--hub-dataset", DATASET)
    assert done.returncode == 2
    assert DATASET in done.stderr and name in done.stderr and "the local one stays" in done.stderr
    assert done.stderr.count("\n") == 1
    for file, content in files.items():
        assert (local / file).read_bytes() == content


@pytest.mark.parametrize(
    ("files", "sentence"),
    [(None, "the Hub refused the exchange"), ({"README.md": b"hello"}, "has no embeddings.safetensors")],
)
def test_a_dataset_that_holds_no_index_is_one_sentence(hub, detect, tmp_path, files, sentence):
    if files is not None:
        hub.datasets[DATASET] = files
    done = detect(tmp_path / "index", "--hub-dataset", DATASET)
    assert done.returncode == 2
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_a_name_that_is_no_datasets_is_one_sentence(detect, tmp_path):
    done = detect(tmp_path / "index", "--hub-dataset", "not a/name/at all")
    assert done.returncode == 2
    assert "write it as ORG/NAME" in done.stderr and done.stderr.count("\n") == 1
