"""`twinlens diff --replay`: the port is run on what the reference's modules were given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECIPES = """
import torch
import twinlens
from torch import nn


class Block(nn.Module):
    def __init__(self, eps=1e-5, is_late=False):
        super().__init__()
        self.norm, self.up, self.is_late = nn.LayerNorm(8, eps=eps), nn.Linear(8, 8), is_late

    def forward(self, x):
        if x.shape[1] != 5:
            raise ValueError("five tokens, please")
        up = self.up(self.norm(x))
        return x + (torch.relu(up) if self.is_late else torch.sigmoid(up))


class Model(nn.Module):
    def __init__(self, *blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def built(*blocks):
    torch.manual_seed(0)
    for block in blocks:
        for parameter in block.parameters():
            nn.init.normal_(parameter)
    return Model(*blocks).eval()


@twinlens.recipe(target=Model)
def reference():
    return built(Block(), Block()), {"x": torch.ones(2, 5, 8).cumsum(-1)}


@twinlens.recipe(target=Model)
def port():
    return built(Block(eps=0.5), Block(is_late=True)), {"x": torch.ones(2, 5, 8).cumsum(-1)}


@twinlens.recipe(target=Model)
def picky():
    return built(Block(), Block()), {"x": torch.ones(2, 4, 8).cumsum(-1)}
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from twinlens.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("replay")
    (made / "recipes.py").write_text(RECIPES)
    for name in ("reference", "port"):
        assert run(made, "trace", f"recipes.py::{name}", "--output-dir", name).returncode == 0
    return made


def test_two_faults_one_behind_the_other_are_each_judged_alone(folder: Path):
    replay = ("--replay", "recipes.py::reference", "recipes.py::port")
    found = run(folder, "diff", "reference", "port", *replay, "--json", "-")
    assert found.returncode == 1, found.stderr
    origins = json.loads(found.stdout)["origins"]
    assert [(origin["port"], origin["causes"][0]["code"]) for origin in origins] == [
        ("Model.blocks.0.norm", "eps"),
        ("Model.blocks.1", "activation-variant"),
    ]


def test_a_port_that_raises_says_where(folder: Path):
    replay = ("--replay", "recipes.py::reference", "recipes.py::picky")
    found = run(folder, "diff", "reference", "port", *replay)
    line = RECIPES.splitlines().index('            raise ValueError("five tokens, please")') + 1
    assert found.returncode == 2
    assert found.stderr.strip() == (
        "twinlens: the port raised on the reference's inputs: ValueError: five tokens, please "
        f"(recipes.py:{line}, in forward)."
    )
