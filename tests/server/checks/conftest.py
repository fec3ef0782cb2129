"""The installed transformers' models, which some checks look things up in."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from twinlens.checks.world import World


@pytest.fixture(scope="session")
def installed() -> World:
    """What can be read where transformers is installed."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        pytest.skip("transformers is not installed")
    return World((Path(spec.origin).parent / "models",))
