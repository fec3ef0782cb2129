"""A BERT-like encoder with learned positions, norms after the residual and a fused projection; and a port in parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class EncoderConfig:
    vocab: int = 80
    hidden: int = 48
    inner: int = 96
    layers: int = 2
    heads: int = 4
    positions: int = 64
    padding_index: int = 1
    eps: float = 1e-12
    by_head: bool = False
    """Whether the authors' fused projection holds q, k and v of each head side by side."""

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


class Mixer(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.config = config
        self.fused = nn.Linear(config.hidden, 3 * config.hidden)
        self.merge = nn.Linear(config.hidden, config.hidden)

    def forward(self, states, keep):
        batch, length, _ = states.shape
        shape = (
            (batch, length, self.config.heads, 3, -1)
            if self.config.by_head
            else (batch, length, 3, self.config.heads, -1)
        )
        fused = self.fused(states).view(shape)
        q, k, v = fused.unbind(3 if self.config.by_head else 2)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        scores = q @ k.mT / math.sqrt(self.config.head_size)
        scores = scores.masked_fill(~keep[:, None, None, :], -10000.0)
        return self.merge((torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))


class Cell(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.mix = Mixer(config)
        self.ln_mix = nn.LayerNorm(config.hidden, eps=config.eps)
        self.widen = nn.Linear(config.hidden, config.inner)
        self.narrow = nn.Linear(config.inner, config.hidden)
        self.ln_out = nn.LayerNorm(config.hidden, eps=config.eps)

    def forward(self, states, keep):
        states = self.ln_mix(states + self.mix(states, keep))
        return self.ln_out(states + self.narrow(F.gelu(self.widen(states))))


class AuthorsEncoder(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocab, config.hidden)
        self.places = nn.Embedding(config.positions, config.hidden)
        self.ln = nn.LayerNorm(config.hidden, eps=config.eps)
        self.cells = nn.ModuleList(Cell(config) for _ in range(config.layers))
        self.pool = nn.Linear(config.hidden, config.hidden)

    def forward(self, tokens):
        keep = tokens != self.config.padding_index
        positions = torch.cumsum(keep.long(), 1) * keep + self.config.padding_index
        states = self.ln(self.words(tokens) + self.places(positions))
        for cell in self.cells:
            states = cell(states, keep)
        return states, torch.tanh(self.pool(states[:, 0]))


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


class PortEmbeddings(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.knobs = knobs
        self.padding_idx = config.padding_index
        self.word_embeddings = nn.Embedding(config.vocab, config.hidden)
        self.position_embeddings = nn.Embedding(config.positions, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=knobs.eps or config.eps)
        self.dropout = nn.Dropout(knobs.dropout)

    def forward(self, input_ids, attention_mask):
        if self.knobs.counts_padding:
            position_ids = torch.arange(input_ids.shape[1])[None].expand_as(input_ids) + self.padding_idx + 1
        else:
            position_ids = torch.cumsum(attention_mask, 1) * attention_mask + self.padding_idx
        position_ids = position_ids + self.knobs.position_offset
        embedded = self.word_embeddings(input_ids) + self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(embedded))


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
            bias = bias.masked_fill(attention_mask[:, None, None, :] == 0, torch.finfo(q.dtype).min)
        if self.knobs.uses_sdpa:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
            context = nn.functional.softmax(scores, dim=-1) @ v
        return context.transpose(1, 2).reshape(batch, length, -1)


class PortSelfOutput(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=knobs.eps or config.eps)
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
        }[knobs.activation]

    def forward(self, hidden_states):
        return self.intermediate_act_fn(self.dense(hidden_states))


class PortOutput(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.dense = nn.Linear(config.inner, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=knobs.eps or config.eps)

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

    def forward(self, hidden_states, attention_mask):
        for layer in self.layer:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states


class PortPooler(nn.Module):
    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.activation = nn.Tanh()

    def forward(self, hidden_states):
        return self.activation(self.dense(hidden_states[:, 0]))


class PortEncoderModel(nn.Module):
    def __init__(self, config: EncoderConfig, knobs: EncoderKnobs):
        super().__init__()
        self.embeddings = PortEmbeddings(config, knobs)
        self.encoder = PortLayers(config, knobs)
        self.pooler = PortPooler(config)

    def forward(self, input_ids, attention_mask):
        hidden_states = self.encoder(self.embeddings(input_ids, attention_mask), attention_mask)
        return {"last_hidden_state": hidden_states, "pooler_output": self.pooler(hidden_states)}


def original(config: EncoderConfig) -> AuthorsEncoder:
    torch.manual_seed(21)
    model = AuthorsEncoder(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "ln" in name and name.endswith("weight"):
                parameter.normal_(1, 0.2)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.2)
            else:
                parameter.normal_(0, 1.2 / parameter.shape[1] ** 0.5)
    return model


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
