"""Faults in the vision model's port, and in what goes into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch.nn import functional as F  # noqa: N812

from .pairs import Built, Case
from .vision import MEAN, STD, PortVisionModel, VisionConfig, VisionKnobs, converted, original, preprocess

BOTH = ("float32", "bfloat16")
PLAIN = VisionConfig()
Weights = dict[str, torch.Tensor]


def image() -> torch.Tensor:
    torch.manual_seed(9)
    coarse = torch.rand(2, 3, 6, 6) * 255
    smooth = F.interpolate(coarse, size=(PLAIN.image, PLAIN.image), mode="bicubic").clamp(0, 255)
    return (smooth + 12 * torch.randn(2, 3, PLAIN.image, PLAIN.image)).clamp(0, 255)


def resized(pixels: torch.Tensor, mode: str) -> torch.Tensor:
    return F.interpolate(
        pixels, size=(PLAIN.image, PLAIN.image), mode=mode, antialias=mode != "nearest-exact" and mode != "nearest"
    )


def build(
    knobs: VisionKnobs,
    pixels: Callable[[torch.Tensor], torch.Tensor] = preprocess,
    change: Callable[[Weights], None] | None = None,
    *,
    trains: bool = False,
) -> Built:
    ours = original(PLAIN)
    weights = converted(ours)
    if change is not None:
        change(weights)
    port = PortVisionModel(PLAIN, knobs).train(trains)
    port.load_state_dict(weights, strict=False)
    return Built(ours, port, {"image": preprocess(image())}, {"pixel_values": pixels(image())})


def heads_side_by_side(weights: Weights) -> None:
    for name in [name for name in weights if "attention.qkv" in name]:
        tensor = weights[name]
        weights[name] = tensor.view(3, PLAIN.heads, -1, *tensor.shape[1:]).transpose(0, 1).reshape(tensor.shape)


def case(
    name: str,
    code: str,
    origins: tuple[str, ...],
    *,
    dtypes: tuple[str, ...] = BOTH,
    pixels: Callable[[torch.Tensor], torch.Tensor] = preprocess,
    change: Callable[[Weights], None] | None = None,
    trains: bool = False,
    **knobs: object,
) -> Case:
    made = partial(build, VisionKnobs(**knobs), pixels, change, trains=trains)  # type: ignore[arg-type]
    return Case(name, "vision", made, {code: origins} if code else {}, dtypes)


STEM = ("embeddings.stem", "embeddings.stem.convolution")
ATTENTION = "layers.0.attention"

CASES = (
    case("padding before instead of behind", "conv-padding", STEM, padding="before"),
    case("padding on both sides", "conv-padding", STEM, padding="both"),
    case("batch norm eps 1e-3", "eps", ("embeddings.stem.normalization",), bn_eps=1e-3, dtypes=("float32",)),
    case("eps 1e-3 for 1e-6", "eps", ("layers.0.layernorm_before",), eps=1e-3, dtypes=("float32",)),
    case(
        "tanh GELU for GELU", "activation-variant", ("layers.0.activation_fn",), activation="tanh", dtypes=("float32",)
    ),
    case("SiLU for GELU", "activation-variant", ("layers.0.activation_fn",), activation="silu"),
    case("fused projection read by head", "fused-order", (ATTENTION, f"{ATTENTION}.qkv"), fused="by head"),
    case(
        "fused projection converted by head", "fused-order", (ATTENTION, f"{ATTENTION}.qkv"), change=heads_side_by_side
    ),
    case("attention scale of the whole width", "attention-scale", (ATTENTION,), scale=PLAIN.hidden**-0.5),
    case("positions not added", "residual-topology", ("embeddings",), adds_positions=False),
    case("class token behind the patches", "token-order", ("embeddings",), class_token="last", dtypes=("float32",)),
    case("patches read by column", "token-order", ("embeddings",), patches="by column", dtypes=("float32",)),
    case("layer scale left out", "residual-topology", ("layers.0",), gamma=False),
    case("heads not transposed back", "head-merge", (ATTENTION,), transposes_back=False),
    case("no activation", "activation-variant", ("layers.0", "layers.0.activation_fn"), has_activation=False),
    case("final norm forgotten", "not-called", ("",), skips="final norm"),
    case("first layer skipped", "not-called", ("",), skips="first layer"),
    case("batch norm in training", "train-mode", ("embeddings.stem.normalization",), trains=True),
    case(
        "other mean and standard deviation",
        "preprocessing",
        ("",),
        pixels=partial(preprocess, mean=(0.5,) * 3, std=(0.5,) * 3),
    ),
    case("not divided by 255", "preprocessing", ("",), pixels=partial(preprocess, scale=1.0)),
    case("BGR for RGB", "preprocessing", ("",), pixels=partial(preprocess, is_bgr=True)),
    case(
        "other interpolation",
        "preprocessing",
        ("",),
        pixels=lambda x: preprocess(resized(F.avg_pool2d(x, 2), "bilinear")),
    ),
)

CONTROLS = (
    case("right port", "", ()),
    case("right port, eager for sdpa", "", (), is_eager=True),
    case("right port, fused by head in weights and code", "", (), change=heads_side_by_side, fused="by head"),
    replace(case("bfloat16 port of a float32 original", "", (), dtypes=("float32",)), port_dtype="bfloat16"),
)

__all__ = ["CASES", "CONTROLS", "MEAN", "STD"]
