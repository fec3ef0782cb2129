"""Faults in the encoder's port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from .encoder import EncoderConfig, original
from .encoder_port import EncoderKnobs, PortEncoderModel, converted
from .pairs import Built, Case, zero

Weights = dict[str, torch.Tensor]
BOTH = ("float32", "bfloat16")
PLAIN = EncoderConfig()
BY_HEAD = EncoderConfig(by_head=True)


def build(
    config: EncoderConfig,
    knobs: EncoderKnobs,
    change: Callable[[Weights, EncoderConfig], None] | None = None,
    *,
    trains: bool = False,
) -> Built:
    ours = original(config)
    weights = converted(ours)
    if change is not None:
        change(weights, config)
    torch.manual_seed(2)
    port = PortEncoderModel(config, knobs).train(trains)
    port.load_state_dict(weights, strict=False)
    torch.manual_seed(8)
    ids = torch.randint(2, config.vocab, (3, 20))
    ids[1, 13:] = config.padding_index
    ids[2, :6] = config.padding_index
    mask = (ids != config.padding_index).long()
    return Built(ours, port, {"tokens": ids}, {"input_ids": ids, "attention_mask": mask})


def transpose_output(weights: Weights, _config: EncoderConfig) -> None:
    name = "encoder.layer.1.attention.output.dense.weight"
    weights[name] = weights[name].T.contiguous()


def split_in_blocks(weights: Weights, config: EncoderConfig) -> None:
    """The fused matrix of heads side by side taken for one of three blocks."""
    theirs = original(config).state_dict()
    for index in range(config.layers):
        for kind in ("weight", "bias"):
            parts = theirs[f"cells.{index}.mix.fused.{kind}"].chunk(3)
            for name, part in zip(("query", "key", "value"), parts, strict=True):
                weights[f"encoder.layer.{index}.attention.self.{name}.{kind}"] = part.clone()


def exchange_keys_and_values(weights: Weights, config: EncoderConfig) -> None:
    for index in range(config.layers):
        for kind in ("weight", "bias"):
            key, value = (f"encoder.layer.{index}.attention.self.{name}.{kind}" for name in ("key", "value"))
            weights[key], weights[value] = weights[value], weights[key]


def forget(part: str, weights: Weights, _config: EncoderConfig) -> None:
    for name in [name for name in weights if part in name]:
        del weights[name]


def exchange_norms(weights: Weights, _config: EncoderConfig) -> None:
    for kind in ("weight", "bias"):
        names = [f"encoder.layer.0.{part}LayerNorm.{kind}" for part in ("attention.output.", "output.")]
        weights[names[0]], weights[names[1]] = weights[names[1]], weights[names[0]]


def shift_rows(weights: Weights, _config: EncoderConfig) -> None:
    name = "embeddings.position_embeddings.weight"
    weights[name] = weights[name].roll(-2, 0)


def case(
    name: str,
    code: str,
    origins: tuple[str, ...],
    *,
    config: EncoderConfig = PLAIN,
    dtypes: tuple[str, ...] = BOTH,
    change: Callable[[Weights, EncoderConfig], None] | None = None,
    trains: bool = False,
    **knobs: object,
) -> Case:
    made = partial(build, config, EncoderKnobs(**knobs), change, trains=trains)  # type: ignore[arg-type]
    return Case(name, "encoder", made, {code: origins} if code else {}, dtypes)


LAYER = "encoder.layer.0."
SELF = f"{LAYER}attention.self"

CASES = (
    case(
        "positions two too far", "position-offset", ("embeddings", "embeddings.position_embeddings"), position_offset=2
    ),
    case("position rows shifted", "position-offset", ("embeddings.position_embeddings",), change=shift_rows),
    case("positions count padding", "positions-ignore-padding", ("embeddings",), counts_padding=True),
    case("padding mask ignored", "mask-missing", (SELF,), sees_padding=True),
    case("eps 1e-3 for 1e-12", "eps", ("embeddings.LayerNorm",), eps=1e-3, dtypes=("float32",)),
    case("eps 1e-5 for 1e-12", "eps", ("embeddings.LayerNorm",), eps=1e-5, dtypes=("float32",)),
    case("tanh GELU for GELU", "activation-variant", (f"{LAYER}intermediate",), activation="tanh", dtypes=("float32",)),
    case("ReLU for GELU", "activation-variant", (f"{LAYER}intermediate",), activation="relu"),
    case("norm before the residual", "residual-topology", (f"{LAYER}attention.output",), is_pre_norm=True),
    case(
        "output projection transposed",
        "transposed-weight",
        ("encoder.layer.1.attention.output.dense",),
        change=transpose_output,
    ),
    case(
        "heads side by side read as blocks",
        "fused-order",
        (SELF, f"{SELF}.query", f"{SELF}.key", f"{SELF}.value"),
        config=BY_HEAD,
        change=split_in_blocks,
    ),
    case("query without a bias", "missing-bias", (f"{SELF}.query",), bias=False, change=partial(forget, "query.bias")),
    case(
        "bias of the narrow projection zero",
        "missing-bias",
        (f"{LAYER}output.dense",),
        change=partial(zero, "layer.0.output.dense.bias"),
    ),
    case(
        "bias of a norm zero",
        "missing-bias",
        (f"{LAYER}output.LayerNorm",),
        change=partial(zero, "layer.0.output.LayerNorm.bias"),
    ),
    case("softmax over the queries", "softmax-axis", (SELF,), softmax_axis=-2),
    case("heads not transposed back", "head-merge", (SELF,), transposes_back=False),
    case("mask inverted", "mask-missing", (SELF,), inverts_mask=True),
    case(
        "keys and values exchanged in weights",
        "fused-order",
        (SELF, f"{SELF}.key", f"{SELF}.value"),
        change=exchange_keys_and_values,
    ),
    case("RMS norm for layer norm", "norm-formula", ("embeddings.LayerNorm",), norm="rms"),
    case("norm without its bias", "norm-formula", ("embeddings.LayerNorm",), norm="no bias"),
    case("no activation", "activation-variant", (f"{LAYER}intermediate",), activation="none"),
    case("pooler without tanh", "activation-variant", ("pooler", "pooler.activation"), pooler_activation=False),
    case("embedding norm forgotten", "not-called", ("embeddings",), skips="embedding norm"),
    case("last layer skipped", "not-called", ("encoder",), skips="last layer"),
    case("positions reversed", "other-rows", ("embeddings",), reverses_positions=True),
    case("positions not added", "residual-topology", ("embeddings",), adds_positions=False),
    case("last token for the first", "pooling", ("pooler",), pools="last"),
    case("mean for the first token", "pooling", ("pooler",), pools="mean"),
    case(
        "norms of a layer exchanged",
        "call-order",
        (f"{LAYER}attention.output", f"{LAYER}output"),
        change=exchange_norms,
    ),
    case("dropout left on", "train-mode", ("embeddings.dropout", "embeddings"), dropout=0.1, trains=True),
)

CONTROLS = (
    case("right port", "", ()),
    case("right port, heads side by side", "", (), config=BY_HEAD),
    case("right port, sdpa for eager", "", (), uses_sdpa=True),
    replace(case("bfloat16 port of a float32 original", "", (), dtypes=("float32",)), port_dtype="bfloat16"),
)
