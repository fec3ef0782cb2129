from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import transformers

MODELS = Path(transformers.__path__[0]) / "models"
SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(scope="session")
def installed_models() -> Path:
    """`transformers/models` of the test environment."""
    return MODELS


@pytest.fixture(scope="session")
def samples() -> Path:
    """The small workspace that tests and the demo share."""
    return SAMPLES


@pytest.fixture(scope="session")
def lumen_file() -> Path:
    return SAMPLES / "lumen" / "modeling_lumen.py"


@pytest.fixture(scope="session")
def small_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of a few real models: a folder as `transformers/models` is one."""
    root = tmp_path_factory.mktemp("library")
    for model in ("llama", "mistral", "gemma2", "bert", "roberta", "vit", "clip", "mamba2"):
        shutil.copytree(MODELS / model, root / model, ignore=shutil.ignore_patterns("__pycache__"))
    return root
