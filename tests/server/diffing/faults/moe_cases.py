"""Faults in the port of the mixture of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from .moe import MoeConfig, MoeKnobs, PortMoeModel, converted, original
from .pairs import Built, Case

BOTH = ("float32", "bfloat16")
PLAIN = MoeConfig()
SIGMOID = MoeConfig(gates="sigmoid", renormalises=False)
Weights = dict[str, torch.Tensor]


def build(
    config: MoeConfig, knobs: MoeKnobs, change: Callable[[Weights], None] | None = None, *, pads: bool = False
) -> Built:
    ours = original(config)
    weights = converted(ours)
    if change is not None:
        change(weights)
    port = PortMoeModel(config, knobs).eval()
    port.load_state_dict(weights)
    torch.manual_seed(10)
    ids = torch.randint(0, config.vocab, (2, 24))
    mask = torch.ones_like(ids)
    if pads:
        mask[0, :7] = 0
    return Built(ours, port, {"ids": ids, "keep": mask}, {"input_ids": ids, "attention_mask": mask})


def swap_halves(weights: Weights) -> None:
    for name in [name for name in weights if name.endswith("gate_up_proj")]:
        weights[name] = weights[name].roll(PLAIN.inner, 1)


def case(
    name: str,
    code: str,
    origins: tuple[str, ...],
    *,
    config: MoeConfig = PLAIN,
    dtypes: tuple[str, ...] = BOTH,
    change: Callable[[Weights], None] | None = None,
    pads: bool = False,
    **knobs: object,
) -> Case:
    made = partial(build, config, MoeKnobs(**knobs), change, pads=pads)  # type: ignore[arg-type]
    return Case(name, "moe", made, {code: origins} if code else {}, dtypes)


MOE = "layers.0.block_sparse_moe"
ROUTER = (f"{MOE}.router", MOE, f"{MOE}.experts")
CONV = "layers.0.short_conv"

CASES = (
    case("weights not renormalised", "router-normalisation", ROUTER, routing="softmax, topk"),
    case("sigmoid for softmax", "router-normalisation", ROUTER, routing="sigmoid, topk, renormalise"),
    case("softmax for sigmoid", "router-normalisation", ROUTER, config=SIGMOID, routing="softmax, topk"),
    case(
        "sigmoid weights renormalised",
        "router-normalisation",
        ROUTER,
        config=SIGMOID,
        routing="sigmoid, topk, renormalise",
    ),
    case("weights scaled by 2.5", "router-normalisation", ROUTER, factor=2.5),
    case("gate and up exchanged in code", "gate-up-swapped", (f"{MOE}.experts", MOE), swaps=True),
    case("gate and up exchanged in weights", "gate-up-swapped", (f"{MOE}.experts", MOE), change=swap_halves),
    case("padding leaks through the convolution", "padding-leak", (CONV,), pads=True, zeroes_padding=False),
    case("norm by the sum of squares", "norm-formula", ("layers.0.operator_norm",), norm="sum"),
    case("norm without its weight", "norm-formula", ("layers.0.operator_norm",), norm="no weight"),
    case("no activation before the convolution's product", "activation-variant", (CONV,), gates_convolution=False),
    case("final norm forgotten", "not-called", ("",), skips="final norm"),
    case("last layer skipped", "not-called", ("",), skips="last layer"),
    case("eps 1e-3 for 1e-5", "eps", ("layers.0.operator_norm",), eps=1e-3, dtypes=("float32",)),
)

CONTROLS = (
    case("right port", "", ()),
    case("right port, padding", "", (), pads=True),
    case("right port, softmax over the chosen", "", (), routing="topk, softmax"),
    case("right port, sigmoid gates", "", (), config=SIGMOID, routing="sigmoid, topk"),
    replace(case("bfloat16 port of a float32 original", "", (), dtypes=("float32",)), port_dtype="bfloat16"),
)
