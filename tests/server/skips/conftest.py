from __future__ import annotations

import os
from pathlib import Path

import pytest
from twinlens.skips.files import Files
from twinlens.skips.scan import Linked, scan

CHECKOUT = Path(__file__).parents[2] / "samples" / "checkout"


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The sample checkout: every way in which a class keeps out of a common test."""
    return CHECKOUT


@pytest.fixture(scope="session")
def linked(checkout) -> Linked:
    return scan(Files(checkout))


@pytest.fixture(scope="session")
def transformers_checkout() -> Path:
    """A real checkout, where one is given."""
    folder = os.environ.get("TWINLENS_TRANSFORMERS")
    if not folder:
        pytest.skip("set TWINLENS_TRANSFORMERS to a transformers checkout to run this")
    return Path(folder)


@pytest.fixture
def tree(tmp_path):
    """Writes a checkout from paths and texts, with a common mixin of two tests where none is given."""

    def write(files: dict[str, str]) -> Path:
        for path, text in {
            "tests/test_modeling_common.py": COMMON,
            "tests/generation/test_utils.py": "",
            **files,
        }.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        return tmp_path

    return write


COMMON = """
class ModelTesterMixin:
    has_attentions = True

    def test_forward(self):
        self.assertTrue(self.all_model_classes)

    def test_attentions(self):
        if not self.has_attentions:
            self.skipTest("no attentions")
        self.assertTrue(self.all_model_classes)
"""
