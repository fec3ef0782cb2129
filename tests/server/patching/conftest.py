"""Both implementations of the registry, and a package of layers for them to patch."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import textwrap
from types import ModuleType

import pytest
import twinlens.patching
from torch import nn

without_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@pytest.fixture(params=["twinlens", pytest.param("transformers", marks=without_transformers)])
def registry(request):
    """The module with the registry's functions, of each implementation in turn; empty before and after."""
    name = "twinlens.patching" if request.param == "twinlens" else "transformers.monkey_patching"
    module = importlib.import_module(name)
    module.clear_patch_mapping()
    yield module
    module.clear_patch_mapping()


@pytest.fixture
def ours():
    """Our registry alone."""
    twinlens.patching.clear_patch_mapping()
    yield twinlens.patching
    twinlens.patching.clear_patch_mapping()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package of modules and imports it; a name that begins with `transformers` is patched by both sides."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def write(package_name: str = "transformers_probe", **modules: str) -> ModuleType:
        folder = tmp_path / package_name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        made.append(package_name)
        return importlib.import_module(f"{package_name}.{next(iter(modules))}")

    yield write
    for name in list(sys.modules):
        if name.split(".")[0] in made:
            del sys.modules[name]


LAYERS = """
    from torch import nn

    class ProbeAttention(nn.Module):
        def forward(self, states):
            return states, states

    class ProbeAttentionNew(ProbeAttention):
        pass

    class ProbeMLP(nn.Module):
        def forward(self, states):
            return states

    class Probe:
        pass

    class ProbeModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = ProbeAttention()
            self.mlp = ProbeMLP()

        def forward(self, states):
            return self.mlp(self.attn(states)[0])
"""


@pytest.fixture
def layers(package):
    return package(layers=LAYERS)


class Fused(nn.Module):
    def forward(self, states):
        return states * 2, states


class Other(nn.Module):
    def forward(self, states):
        return states * 3, states
