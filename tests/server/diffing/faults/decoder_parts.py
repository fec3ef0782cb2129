"""What the decoder's port is made of, and its knobs: each is a fault."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .decoder import DecoderConfig


@dataclass(frozen=True)
class DecoderKnobs:
    """What a port does; the defaults are right."""

    eps: float | None = None
    norm_offset: float | None = None
    norm_casts_first: bool = False
    is_interleaved: bool = False
    theta: float | None = None
    rotary_share: float = 1.0
    frequencies_dtype: torch.dtype = torch.float32
    gelu: str | None = None
    swaps_gate_and_up: bool = False
    embedding_scale: float | None = None
    attention_scale: float | None = None
    attention_cap: float | str | None = "same"
    logit_cap: float | str | None = "same"
    window: int | str | None = "same"
    is_causal: bool = True
    sees_padding: bool = False
    tiles_heads: bool = False
    qk_norm: str = "heads"
    topology: str = "sequential"
    uses_sdpa: bool = False
    masked_rows: str = "mean"
    dropout: float = 0.0
    softmax_axis: int = -1
    rotated: str = "qk"
    rotates_back: bool = False
    swaps_tables: bool = False
    positions_are_zero: bool = False
    joins: str = "heads behind tokens"
    tiles_values: bool = False
    swaps_keys_and_values: bool = False
    sees_itself: bool = True
    norm: str = ""
    product: str = "act(gate) * up"
    gate_limits: tuple[float | None, float | None] | str = "same"
    fused_gate: str = ""
    up_shift: float = 0.0
    exchanged_norms: str = ""
    skips: str = ""
    order: tuple[int, ...] = (0, 1, 2)


class PortRMSNorm(nn.Module):
    def __init__(self, size: int, eps: float, offset: float, casts_first: bool = False, formula: str = ""):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.variance_epsilon = eps
        self.offset = offset
        self.casts_first = casts_first
        self.formula = formula

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        wide = hidden_states.to(torch.float32)
        normed = self._normed(wide)
        if self.formula == "no weight":
            return normed.to(dtype)
        if self.casts_first:
            return normed.to(dtype) * (self.offset + self.weight)
        return (normed * (self.offset + self.weight.float())).to(dtype)

    def _normed(self, wide):
        if self.formula == "mean taken off":
            wide = wide - wide.mean(-1, keepdim=True)
        squares = wide.pow(2).sum(-1, keepdim=True)
        count = {"sum": 1, "unbiased": wide.shape[-1] - 1}.get(self.formula, wide.shape[-1])
        if self.formula == "eps after the root":
            return wide / (torch.sqrt(squares / count) + self.variance_epsilon)
        return wide * torch.rsqrt(squares / count + self.variance_epsilon)


class PortRotaryEmbedding(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        size = int(config.head_size * knobs.rotary_share)
        theta = knobs.theta or config.theta
        frequencies = 1.0 / theta ** (torch.arange(0, size, 2).float() / size)
        self.register_buffer("inv_freq", frequencies.to(knobs.frequencies_dtype).float(), persistent=False)
        self.is_interleaved = knobs.is_interleaved
        self.swaps_tables = knobs.swaps_tables

    def forward(self, hidden_states, position_ids):
        angles = position_ids[:, :, None].float() * self.inv_freq
        angles = angles.repeat_interleave(2, -1) if self.is_interleaved else torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(hidden_states.dtype), angles.sin().to(hidden_states.dtype)
        return (sin, cos) if self.swaps_tables else (cos, sin)


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def joined_heads(context, joins):
    batch, heads, length, size = context.shape
    if joins == "heads before tokens":
        return context.reshape(batch, length, heads * size)
    order = (0, 2, 3, 1) if joins == "heads behind sizes" else (0, 2, 1, 3)
    return context.permute(order).reshape(batch, length, heads * size)


def norm_all_heads(x, norm):
    mean_square = x.float().pow(2).mean((1, 3), keepdim=True)
    normed = x.float() * torch.rsqrt(mean_square + norm.variance_epsilon)
    return (normed * (norm.offset + norm.weight.float())).to(x.dtype)


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


def activation(name):
    return {"tanh": nn.GELU("tanh"), "none": nn.GELU(), "quick": QuickGELU(), "silu": nn.SiLU(), "relu": nn.ReLU()}[
        name
    ]
