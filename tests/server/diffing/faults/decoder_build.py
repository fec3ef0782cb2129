"""A pair of decoders with one fault: in the port's code, in its weights, or in what is done to it afterwards."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .decoder import DecoderConfig, original
from .decoder_parts import DecoderKnobs
from .decoder_port import PortForCausalLM, converted, halves_from_pairs
from .pairs import Built

Weights = dict[str, torch.Tensor]


def build(
    config: DecoderConfig,
    knobs: DecoderKnobs,
    change: Callable[[Weights, DecoderConfig], None] | None = None,
    after: Callable[[PortForCausalLM], None] | None = None,
    *,
    pads: bool = False,
    length: int = 28,
) -> Built:
    ours = original(config)
    weights = converted(ours)
    if change is not None:
        change(weights, config)
    torch.manual_seed(3)
    port = PortForCausalLM(config, knobs).eval()
    port.load_state_dict(weights, strict=False)
    if after is not None:
        after(port)
    torch.manual_seed(7)
    ids = torch.randint(0, config.vocab, (2, length))
    if not pads:
        return Built(ours, port, {"tokens": ids}, {"input_ids": ids})
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    return Built(ours, port, {"tokens": ids, "padding": mask}, {"input_ids": ids, "attention_mask": mask})


def leave_pairs(weights: Weights, config: DecoderConfig) -> None:
    """Rows of q and k stay as the authors' rotation wants them."""
    ours = original(config).state_dict()
    size, heads, kv_heads = config.head_size, config.heads, config.kv_heads
    for index in range(config.layers):
        for kind in ("weight", "bias") if config.query_bias else ("weight",):
            q, k, _v = ours[f"layers.{index}.attention.wqkv.{kind}"].split(
                [heads * size, kv_heads * size, kv_heads * size]
            )
            weights[f"model.layers.{index}.self_attn.q_proj.{kind}"] = q.clone()
            weights[f"model.layers.{index}.self_attn.k_proj.{kind}"] = k.clone()


def permute_twice(weights: Weights, config: DecoderConfig) -> None:
    for name, tensor in weights.items():
        if "q_proj" in name:
            weights[name] = halves_from_pairs(tensor, config.heads)
        elif "k_proj" in name:
            weights[name] = halves_from_pairs(tensor, config.kv_heads)


def split_by_head(weights: Weights, config: DecoderConfig) -> None:
    """The fused matrix read as if each group held its queries, its key and its value side by side."""
    ours = original(config).state_dict()
    size, kv_heads, groups = config.head_size, config.kv_heads, config.heads // config.kv_heads
    for index in range(config.layers):
        for kind in ("weight", "bias") if config.query_bias else ("weight",):
            fused = ours[f"layers.{index}.attention.wqkv.{kind}"]
            grouped = fused.view(kv_heads, groups + 2, size, *fused.shape[1:])
            q, k, v = grouped[:, :groups], grouped[:, groups : groups + 1], grouped[:, groups + 1 :]
            prefix = f"model.layers.{index}.self_attn."
            weights[f"{prefix}q_proj.{kind}"] = halves_from_pairs(q.reshape(-1, *fused.shape[1:]), config.heads)
            weights[f"{prefix}k_proj.{kind}"] = halves_from_pairs(k.reshape(-1, *fused.shape[1:]), kv_heads)
            weights[f"{prefix}v_proj.{kind}"] = v.reshape(-1, *fused.shape[1:]).clone()


def swap_gate_and_up(weights: Weights, config: DecoderConfig) -> None:
    for index in range(config.layers):
        gate, up = (f"model.layers.{index}.mlp.{name}.weight" for name in ("gate_proj", "up_proj"))
        weights[gate], weights[up] = weights[up], weights[gate]


def swap_norms(first: str, second: str, weights: Weights, config: DecoderConfig) -> None:
    for index in range(config.layers):
        ours, theirs = (f"model.layers.{index}.{name}.weight" for name in (first, second))
        weights[ours], weights[theirs] = weights[theirs], weights[ours]


def fuse_gate_and_up(weights: Weights, config: DecoderConfig, *, alternates: bool = False) -> None:
    for index in range(config.layers):
        prefix = f"model.layers.{index}.mlp."
        gate, up = (weights.pop(f"{prefix}{name}.weight") for name in ("gate_proj", "up_proj"))
        rows = torch.stack((gate, up), 1).flatten(0, 1) if alternates else torch.cat((gate, up))
        weights[f"{prefix}gate_up_proj.weight"] = rows


def transpose(name: str, layer: int, weights: Weights, _config: DecoderConfig) -> None:
    key = f"model.layers.{layer}.self_attn.{name}.weight"
    weights[key] = weights[key].T.contiguous()


def fill_frequencies(value: str, port: PortForCausalLM) -> None:
    buffer = port.model.rotary_emb.inv_freq
    if value == "zeros":
        buffer.zero_()
    elif value == "garbage":
        buffer.copy_(torch.tensor([3e-39, 1.7, 0.0, 41.0])[: len(buffer)])


def untie(port: PortForCausalLM) -> None:
    torch.manual_seed(4)
    port.lm_head.weight = torch.nn.Parameter(torch.randn_like(port.lm_head.weight) * 0.02)


def train(port: PortForCausalLM) -> None:
    port.train()
