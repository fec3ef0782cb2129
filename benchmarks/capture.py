"""What `capture_outputs` costs: when nothing is asked for, and a hook when something is, against transformers' own.

Every figure is the least of many interleaved rounds of one run, in microseconds of the thread's own time, over the same
forward without a decorator, and as a ratio to transformers' figure.

    python benchmarks/capture.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import twinlens
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import output_capturing

LAYERS = 64
ROUNDS = 101
CALLS = 20


class Layer(nn.Module):
    """Does nothing, so that what is measured is the capturing."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states


def model_of(layers: int, decorate: Callable[..., Any] | None) -> PreTrainedModel:
    """A model of `layers` layers whose forward `decorate` decorates, or nothing does."""

    class Model(PreTrainedModel):
        config_class = PretrainedConfig
        _can_record_outputs = {"hidden_states": Layer}  # noqa: RUF012  # as transformers spells it

        def __init__(self, config: PretrainedConfig) -> None:
            super().__init__(config)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.post_init()

        def forward(self, states: torch.Tensor, **kwargs: Any) -> BaseModelOutput:  # noqa: ARG002
            for layer in self.layers:
                states = layer(states)
            return BaseModelOutput(last_hidden_state=states)

    if decorate is not None:
        Model.forward = decorate(Model.forward)
    return Model(PretrainedConfig()).eval()


def microseconds(call: Callable[[], object]) -> float:
    """The time of one call in this thread, over `CALLS` of them."""
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - start) / CALLS * 1e6


def over_undecorated(layers: int, captured: bool, flags: dict[str, bool]) -> dict[str, float]:
    """What a call with `flags` costs each side over the undecorated forward, once `captured` something or not."""
    states = torch.zeros(1)
    models = {name: model_of(layers, decorate) for name, decorate in DECORATORS.items()}
    for name, model in models.items():
        if captured and DECORATORS[name] is not None:
            model(states, output_hidden_states=True)
    taken: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name, model in models.items():
            taken[name].append(microseconds(lambda model=model: model(states, **flags)))
    return {name: min(values) - min(taken["undecorated"]) for name, values in taken.items()}


DECORATORS: dict[str, Callable[..., Any] | None] = {
    "undecorated": None,
    "twinlens": twinlens.capture_outputs,
    "transformers": output_capturing.capture_outputs,
}
ASKED = {"output_hidden_states": True}


def main() -> None:
    """Print the table."""
    torch.set_grad_enabled(False)
    decorator = over_undecorated(1, captured=False, flags={})
    idle = over_undecorated(LAYERS, captured=True, flags={})
    busy = over_undecorated(LAYERS, captured=True, flags=ASKED)
    print(f"torch {torch.__version__}; microseconds over the undecorated forward")
    print(f"{'':48}{'twinlens':>10}{'transformers':>14}{'ratio':>7}")
    rows = {
        "a call that asks for nothing": decorator,
        "the same after a capture, a hook": {name: idle[name] / LAYERS for name in idle},
        "a call that asks for hidden states, a hook": {name: busy[name] / LAYERS for name in busy},
    }
    for label, figures in rows.items():
        ours, theirs = figures["twinlens"], figures["transformers"]
        print(f"{label:48}{ours:10.2f}{theirs:14.2f}{ours / theirs:7.2f}")


if __name__ == "__main__":
    main()
