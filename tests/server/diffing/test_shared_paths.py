"""What a page for other people calls a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlens.diffing.shared_paths import shared_path

ROOT = Path("/home/ada/port")


@pytest.mark.parametrize(
    ("file", "qualified_name", "expected"),
    [
        ("/home/ada/port/nova/modeling_nova.py", "nova.modeling_nova.NovaMLP", "nova/modeling_nova.py"),
        (
            "/home/ada/port/.venv/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py",
            "transformers.models.llama.modeling_llama.LlamaMLP",
            "transformers/models/llama/modeling_llama.py",
        ),
        (
            "/usr/lib/python3/dist-packages/timm/layers/norm.py",
            "timm.layers.norm.LayerNorm",
            "timm/layers/norm.py",
        ),
        (
            "/home/ada/transformers/src/transformers/models/llama/modeling_llama.py",
            "transformers.models.llama.modeling_llama.LlamaMLP",
            "transformers/models/llama/modeling_llama.py",
        ),
        ("/home/ada/original/model.py", "model.Block.Inner", "model.py"),
        ("/home/ada/.twinlens/recipes/nets.py", "nets_0a1b2c.Net", "nets.py"),
    ],
)
def test_a_file_is_named_as_others_have_it(file, qualified_name, expected):
    assert shared_path(Path(file), qualified_name, ROOT) == expected
