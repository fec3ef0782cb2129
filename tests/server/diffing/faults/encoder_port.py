"""A port of the encoder in parts, with other names. Every knob is a fault."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from .encoder import AuthorsEncoder, EncoderConfig


@dataclass(frozen=True)
class EncoderKnobs:
    position_offset: int = 0
    counts_padding: bool = False
    sees_padding: bool = False
    eps: float | None = None
    activation: str = "gelu"
    is_pre_norm: bool = False
    bias: bool = True
    dropout: float = 0.0
    uses_sdpa: bool = False
    softmax_axis: int = -1
    transposes_back: bool = True
    inverts_mask: bool = False
    norm: str = ""
    reverses_positions: bool = False
    adds_positions: bool = True
    skips: str = ""
    pools: str = "first"
    pooler_activation: bool = True


class PortNorm(nn.LayerNorm):
    """Layer norm, or what passes for it."""

    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__(config.hidden, eps=knobs.eps or config.eps)
        self.formula = knobs.norm

    def forward(self, hidden_states):
        if self.formula == "no bias":
            return F.layer_norm(hidden_states, self.normalized_shape, self.weight, None, self.eps)
        if self.formula == "rms":
            squares = hidden_states.pow(2).mean(-1, keepdim=True)
            return hidden_states * torch.rsqrt(squares + self.eps) * self.weight + self.bias
        return super().forward(hidden_states)


class PortEmbeddings(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.knobs = knobs
        self.padding_idx = config.padding_index
        self.word_embeddings = nn.Embedding(config.vocab, config.hidden)
        self.position_embeddings = nn.Embedding(config.positions, config.hidden)
        self.LayerNorm = PortNorm(config, knobs)
        self.dropout = nn.Dropout(knobs.dropout)

    def forward(self, input_ids, attention_mask):
        if self.knobs.counts_padding:
            position_ids = torch.arange(input_ids.shape[1])[None].expand_as(input_ids) + self.padding_idx + 1
        else:
            position_ids = torch.cumsum(attention_mask, 1) * attention_mask + self.padding_idx
        position_ids = position_ids + self.knobs.position_offset
        position_ids = position_ids.flip(1) if self.knobs.reverses_positions else position_ids
        embedded = self.word_embeddings(input_ids)
        if self.knobs.adds_positions:
            embedded = embedded + self.position_embeddings(position_ids)
        return self.dropout(embedded if self.knobs.skips == "embedding norm" else self.LayerNorm(embedded))


class PortSelfAttention(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.knobs = knobs
        self.num_attention_heads = config.heads
        self.query = nn.Linear(config.hidden, config.hidden, bias=knobs.bias)
        self.key = nn.Linear(config.hidden, config.hidden)
        self.value = nn.Linear(config.hidden, config.hidden)

    def forward(self, hidden_states, attention_mask):
        batch, length, _ = hidden_states.shape
        q, k, v = (
            layer(hidden_states).view(batch, length, self.num_attention_heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        bias = torch.zeros(batch, 1, 1, length, dtype=q.dtype)
        if not self.knobs.sees_padding:
            unwanted = 1 if self.knobs.inverts_mask else 0
            bias = bias.masked_fill(attention_mask[:, None, None, :] == unwanted, torch.finfo(q.dtype).min)
        if self.knobs.uses_sdpa:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
            context = nn.functional.softmax(scores, dim=self.knobs.softmax_axis) @ v
        context = context.transpose(1, 2) if self.knobs.transposes_back else context
        return context.reshape(batch, length, -1)


class PortSelfOutput(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.LayerNorm = PortNorm(config, knobs)
        self.knobs = knobs

    def forward(self, hidden_states, input_tensor):
        if self.knobs.is_pre_norm:
            return input_tensor + self.LayerNorm(self.dense(hidden_states))
        return self.LayerNorm(self.dense(hidden_states) + input_tensor)


class PortAttention(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.self = PortSelfAttention(config, knobs)
        self.output = PortSelfOutput(config, knobs)

    def forward(self, hidden_states, attention_mask):
        return self.output(self.self(hidden_states, attention_mask), hidden_states)


class PortIntermediate(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.inner)
        self.intermediate_act_fn = {
            "gelu": F.gelu,
            "tanh": lambda x: F.gelu(x, approximate="tanh"),
            "relu": F.relu,
            "silu": F.silu,
            "none": lambda x: x,
        }[knobs.activation]

    def forward(self, hidden_states):
        return self.intermediate_act_fn(self.dense(hidden_states))


class PortOutput(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.dense = nn.Linear(config.inner, config.hidden)
        self.LayerNorm = PortNorm(config, knobs)

    def forward(self, hidden_states, input_tensor):
        return self.LayerNorm(self.dense(hidden_states) + input_tensor)


class PortLayer(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.attention = PortAttention(config, knobs)
        self.intermediate = PortIntermediate(config, knobs)
        self.output = PortOutput(config, knobs)

    def forward(self, hidden_states, attention_mask):
        attended = self.attention(hidden_states, attention_mask)
        return self.output(self.intermediate(attended), attended)


class PortLayers(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.layer = nn.ModuleList(PortLayer(config, knobs) for _ in range(config.layers))
        self.skips_last = knobs.skips == "last layer"

    def forward(self, hidden_states, attention_mask):
        for layer in self.layer[:-1] if self.skips_last else self.layer:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states


class PortPooler(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.activation = nn.Tanh() if knobs.pooler_activation else nn.Identity()
        self.pools = knobs.pools

    def forward(self, hidden_states):
        pooled = {"first": hidden_states[:, 0], "last": hidden_states[:, -1], "mean": hidden_states.mean(1)}[self.pools]
        return self.activation(self.dense(pooled))


class PortEncoderModel(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.embeddings = PortEmbeddings(config, knobs)
        self.encoder = PortLayers(config, knobs)
        self.pooler = PortPooler(config, knobs)

    def forward(self, input_ids, attention_mask):
        hidden_states = self.encoder(self.embeddings(input_ids, attention_mask), attention_mask)
        return {"last_hidden_state": hidden_states, "pooler_output": self.pooler(hidden_states)}


def converted(model: AuthorsEncoder) -> dict[str, torch.Tensor]:
    config, theirs = model.config, model.state_dict()
    ours: dict[str, torch.Tensor] = {
        "embeddings.word_embeddings.weight": theirs["words.weight"],
        "embeddings.position_embeddings.weight": theirs["places.weight"],
    }
    for kind in ("weight", "bias"):
        ours[f"embeddings.LayerNorm.{kind}"] = theirs[f"ln.{kind}"]
        ours[f"pooler.dense.{kind}"] = theirs[f"pool.{kind}"]
        for index in range(config.layers):
            old, new = f"cells.{index}.", f"encoder.layer.{index}."
            fused = theirs[f"{old}mix.fused.{kind}"]
            if config.by_head:
                fused = fused.view(config.heads, 3, config.head_size, -1).transpose(0, 1).reshape(fused.shape)
            for name, part in zip(("query", "key", "value"), fused.chunk(3), strict=True):
                ours[f"{new}attention.self.{name}.{kind}"] = part
            ours[f"{new}attention.output.dense.{kind}"] = theirs[f"{old}mix.merge.{kind}"]
            ours[f"{new}attention.output.LayerNorm.{kind}"] = theirs[f"{old}ln_mix.{kind}"]
            ours[f"{new}intermediate.dense.{kind}"] = theirs[f"{old}widen.{kind}"]
            ours[f"{new}output.dense.{kind}"] = theirs[f"{old}narrow.{kind}"]
            ours[f"{new}output.LayerNorm.{kind}"] = theirs[f"{old}ln_out.{kind}"]
    return {name: tensor.clone() for name, tensor in ours.items()}
