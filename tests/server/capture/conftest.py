"""Both implementations, transformers' own and ours, behind one face: what is documented is tested against both."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import twinlens
from torch import nn


@dataclass
class Implementation:
    """The decorators of one side, with the base class, configuration and output class that they need."""

    name: str
    capture_outputs: Any
    merge_with_config_defaults: Any
    OutputRecorder: Any
    base: type
    output: type
    make_config: Any = field(repr=False)


@dataclass
class PlainOutput:
    last_hidden_state: Any = None
    past_key_values: Any = None
    hidden_states: Any = None
    attentions: Any = None
    cross_attentions: Any = None


class PlainModel(nn.Module):
    """What twinlens asks of a model: to be a module, and to have a configuration if it wants one."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    def post_init(self):
        pass


def ours() -> Implementation:
    return Implementation(
        name="twinlens",
        capture_outputs=twinlens.capture_outputs,
        merge_with_config_defaults=twinlens.merge_with_config_defaults,
        OutputRecorder=twinlens.OutputRecorder,
        base=PlainModel,
        output=PlainOutput,
        make_config=lambda **values: SimpleNamespace(**{"num_hidden_layers": 3, **values}),
    )


def theirs() -> Implementation:
    from transformers import PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
    from transformers.utils.generic import merge_with_config_defaults
    from transformers.utils.output_capturing import OutputRecorder, capture_outputs

    class Base(PreTrainedModel):
        config_class = PretrainedConfig

    def make_config(**values: Any) -> Any:
        config = PretrainedConfig(num_hidden_layers=3)
        for name, value in values.items():
            setattr(config, name, value)
        return config

    return Implementation(
        name="transformers",
        capture_outputs=capture_outputs,
        merge_with_config_defaults=merge_with_config_defaults,
        OutputRecorder=OutputRecorder,
        base=Base,
        output=BaseModelOutputWithPastAndCrossAttentions,
        make_config=make_config,
    )


without_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@pytest.fixture(params=["twinlens", pytest.param("transformers", marks=without_transformers)])
def either(request) -> Implementation:
    """Each implementation in turn."""
    return ours() if request.param == "twinlens" else theirs()


@pytest.fixture(name="ours")
def ours_fixture() -> Implementation:
    """Ours alone: for what transformers does not promise, or gets wrong."""
    return ours()


class Attention(nn.Module):
    """Returns its output and its weights; no weights where the implementation computes none."""

    def __init__(self, weights: bool = True):
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.weights = weights

    def forward(self, states, **kwargs):
        scores = torch.softmax(states @ states.transpose(-1, -2), -1)
        return self.project(scores @ states), scores if self.weights else None


class Block(nn.Module):
    def __init__(self, weights: bool = True):
        super().__init__()
        self.attn = Attention(weights)

    def forward(self, states, **kwargs):
        return states + self.attn(states, **kwargs)[0]


class CrossBlock(Block):
    def __init__(self):
        super().__init__()
        self.crossattn = Attention()

    def forward(self, states, **kwargs):
        states = super().forward(states, **kwargs)
        return states + self.crossattn(states, **kwargs)[0]


def define_model(side: Implementation, *, declared: Any = None, block: type = Block, tie: Any = None, **base: Any):
    """A model class of three blocks and a final norm, decorated by `side`."""
    decorate = side.capture_outputs if tie is None else side.capture_outputs(tie_last_hidden_states=tie)

    class Model(side.base):
        _can_record_outputs = {"hidden_states": block, "attentions": Attention} if declared is None else declared

        def __init__(self, config):
            super().__init__(config)
            self.layers = nn.ModuleList(block() for _ in range(3))
            self.norm = nn.LayerNorm(4)
            self.post_init()

        @decorate
        def forward(self, inputs, **kwargs):
            states = inputs
            for layer in self.layers:
                states = layer(states, **kwargs)
            return side.output(last_hidden_state=self.norm(states))

    return Model


@pytest.fixture
def inputs():
    return torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))


def expected_states(model, inputs):
    """What the three blocks return, computed without any hook."""
    states = [inputs]
    with torch.no_grad():
        for layer in model.layers:
            states.append(layer.forward(states[-1]))
    return states
