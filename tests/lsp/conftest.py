from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import pytest_lsp
import transformers
from lsp_harness import start_session
from pytest_lsp import ClientServerConfig, LanguageClient

HERE = Path(__file__).parent


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, str(HERE / "probe_server.py")]), scope="module"
)
async def probe(lsp_client: LanguageClient):
    """A server whose only feature is the one of probe_server.py."""
    await start_session(lsp_client)
    yield
    await lsp_client.shutdown_session()


@pytest.fixture(scope="session")
def small_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of a few real models: a folder as `transformers/models` is one."""
    models = Path(transformers.__path__[0]) / "models"
    root = tmp_path_factory.mktemp("library")
    for model in ("llama", "mistral", "gemma2", "bert"):
        shutil.copytree(models / model, root / model, ignore=shutil.ignore_patterns("__pycache__"))
    return root
