"""A decoder with grouped-query attention and RoPE: as its authors wrote it, and a port with other names.

The authors keep q, k and v in one matrix, rotate pairs as complex numbers and scale the embedding. The port splits the
matrix and rotates halves. Every knob of `Decoder` that the original lacks is what a porter gets wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class DecoderConfig:
    vocab: int = 96
    hidden: int = 64
    inner: int = 96
    layers: int = 3
    heads: int = 8
    kv_heads: int = 2
    theta: float = 10000.0
    eps: float = 1e-6
    window: int | None = None
    attention_cap: float | None = None
    logit_cap: float | None = None
    qk_norm: bool = False
    norm_offset: float = 1.0
    embedding_scale: bool = True
    query_bias: bool = True
    gelu: str = "tanh"
    head_bias: bool = False

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


class OffsetNorm(nn.Module):
    """RMSNorm whose weight is centred at 0."""

    def __init__(self, size: int, eps: float, offset: float):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(size))
        self.epsilon = eps
        self.offset = offset

    def forward(self, x):
        wide = x.float()
        normed = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + self.epsilon)
        return (normed * (self.offset + self.scale.float())).type_as(x)


class AuthorsAttention(nn.Module):
    def __init__(self, config: DecoderConfig, is_local: bool):
        super().__init__()
        self.config = config
        self.is_local = is_local
        size = config.head_size
        self.wqkv = nn.Linear(config.hidden, (config.heads + 2 * config.kv_heads) * size, bias=config.query_bias)
        self.wo = nn.Linear(config.heads * size, config.hidden, bias=False)
        if config.qk_norm:
            self.norm_q = OffsetNorm(size, config.eps, config.norm_offset)
            self.norm_k = OffsetNorm(size, config.eps, config.norm_offset)

    def forward(self, x, freqs_cis, padding=None):
        config, (batch, length, _) = self.config, x.shape
        size = config.head_size
        q, k, v = self.wqkv(x).split([config.heads * size, config.kv_heads * size, config.kv_heads * size], -1)
        q = q.view(batch, length, config.heads, size)
        k = k.view(batch, length, config.kv_heads, size)
        v = v.view(batch, length, config.kv_heads, size)
        if config.qk_norm:
            q, k = self.norm_q(q), self.norm_k(k)
        q, k = rotate_pairs(q, freqs_cis), rotate_pairs(k, freqs_cis)
        groups = config.heads // config.kv_heads
        k = k[:, :, :, None].expand(-1, -1, -1, groups, -1).reshape(batch, length, config.heads, size)
        v = v[:, :, :, None].expand(-1, -1, -1, groups, -1).reshape(batch, length, config.heads, size)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * size**-0.5
        if config.attention_cap:
            scores = config.attention_cap * torch.tanh(scores / config.attention_cap)
        scores = scores + mask(length, config.window if self.is_local else None, padding, scores.dtype)
        probs = F.softmax(scores.float(), dim=-1).type_as(x)
        return self.wo(torch.einsum("bhqk,bkhd->bqhd", probs, v).reshape(batch, length, -1))


def rotate_pairs(x, freqs_cis):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis[None, :, None]).flatten(-2).type_as(x)


def mask(length, window, padding, dtype):
    ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
    if window is not None:
        ahead = ahead | torch.ones(length, length, dtype=torch.bool).tril(-window)
    blocked = ahead[None, None]
    if padding is not None:
        blocked = blocked | ~padding.bool()[:, None, None, :]
    return torch.zeros(blocked.shape, dtype=dtype).masked_fill(blocked, torch.finfo(dtype).min)


class AuthorsFeedForward(nn.Module):
    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.w1 = nn.Linear(config.hidden, config.inner, bias=False)
        self.w2 = nn.Linear(config.inner, config.hidden, bias=False)
        self.w3 = nn.Linear(config.hidden, config.inner, bias=False)
        self.gelu = config.gelu

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x), approximate=self.gelu) * self.w3(x))


class AuthorsBlock(nn.Module):
    def __init__(self, config: DecoderConfig, index: int):
        super().__init__()
        self.attention_norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)
        self.attention = AuthorsAttention(config, is_local=index % 2 == 0)
        self.ffn_norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)
        self.feed_forward = AuthorsFeedForward(config)

    def forward(self, x, freqs_cis, padding=None):
        x = x + self.attention(self.attention_norm(x), freqs_cis, padding)
        return x + self.feed_forward(self.ffn_norm(x))


class AuthorsDecoder(nn.Module):
    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.config = config
        self.tok_embeddings = nn.Embedding(config.vocab, config.hidden)
        self.layers = nn.ModuleList(AuthorsBlock(config, index) for index in range(config.layers))
        self.norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)
        self.output = nn.Linear(config.hidden, config.vocab, bias=config.head_bias)
        self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens, padding=None):
        config = self.config
        x = self.tok_embeddings(tokens)
        if config.embedding_scale:
            x = x * config.hidden**0.5
        frequencies = config.theta ** (-torch.arange(0, config.head_size, 2).float() / config.head_size)
        angles = torch.outer(torch.arange(tokens.shape[1]).float(), frequencies)
        freqs_cis = torch.polar(torch.ones_like(angles), angles)
        for layer in self.layers:
            x = layer(x, freqs_cis, padding)
        logits = self.output(self.norm(x)).float()
        if config.logit_cap:
            logits = config.logit_cap * torch.tanh(logits / config.logit_cap)
        return logits


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


class PortRMSNorm(nn.Module):
    def __init__(self, size: int, eps: float, offset: float, casts_first: bool = False):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.variance_epsilon = eps
        self.offset = offset
        self.casts_first = casts_first

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        wide = hidden_states.to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        if self.casts_first:
            return normed.to(dtype) * (self.offset + self.weight)
        return (normed * (self.offset + self.weight.float())).to(dtype)


class PortRotaryEmbedding(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        size = int(config.head_size * knobs.rotary_share)
        theta = knobs.theta or config.theta
        frequencies = 1.0 / theta ** (torch.arange(0, size, 2).float() / size)
        self.register_buffer("inv_freq", frequencies.to(knobs.frequencies_dtype).float(), persistent=False)
        self.is_interleaved = knobs.is_interleaved

    def forward(self, hidden_states, position_ids):
        angles = position_ids[:, :, None].float() * self.inv_freq
        angles = angles.repeat_interleave(2, -1) if self.is_interleaved else torch.cat((angles, angles), -1)
        return angles.cos().to(hidden_states.dtype), angles.sin().to(hidden_states.dtype)


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


class PortAttention(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs, is_local: bool):
        super().__init__()
        size = config.head_size
        self.knobs = knobs
        self.head_dim = size
        self.num_key_value_groups = config.heads // config.kv_heads
        self.scaling = knobs.attention_scale or size**-0.5
        window = config.window if knobs.window == "same" else knobs.window
        self.sliding_window = window if is_local else None
        self.softcap = config.attention_cap if knobs.attention_cap == "same" else knobs.attention_cap
        self.q_proj = nn.Linear(config.hidden, config.heads * size, bias=config.query_bias)
        self.k_proj = nn.Linear(config.hidden, config.kv_heads * size, bias=config.query_bias)
        self.v_proj = nn.Linear(config.hidden, config.kv_heads * size, bias=config.query_bias)
        self.o_proj = nn.Linear(config.heads * size, config.hidden, bias=False)
        if config.qk_norm:
            eps, offset = knobs.eps or config.eps, config.norm_offset
            self.q_norm = PortRMSNorm(size, eps, offset)
            self.k_norm = PortRMSNorm(size, eps, offset)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        knobs, (batch, length, _) = self.knobs, hidden_states.shape
        q, k, v = self.q_proj(hidden_states), self.k_proj(hidden_states), self.v_proj(hidden_states)
        q, k, v = (x.view(batch, length, -1, self.head_dim).transpose(1, 2) for x in (q, k, v))
        norms_late = hasattr(self, "q_norm") and knobs.qk_norm == "after rotation"
        if hasattr(self, "q_norm") and knobs.qk_norm in ("heads", "all heads"):
            q, k = self._normed(q, k)
        cos, sin = (table.unsqueeze(1) for table in position_embeddings)
        q, k = self._rotated(q, cos, sin), self._rotated(k, cos, sin)
        if norms_late:
            q, k = self._normed(q, k)
        groups = self.num_key_value_groups
        if knobs.tiles_heads:
            k, v = k.repeat(1, groups, 1, 1), v.repeat(1, groups, 1, 1)
        else:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        padding = None if knobs.sees_padding else attention_mask
        if knobs.is_causal:
            bias = mask(length, self.sliding_window, padding, q.dtype)
        else:
            bias = torch.zeros(1, 1, length, length, dtype=q.dtype)
        if knobs.masked_rows == "nan":
            bias = bias.masked_fill(bias < -1, -math.inf)
        if knobs.uses_sdpa:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scaling)
        else:
            scores = q @ k.transpose(2, 3) * self.scaling
            if self.softcap:
                scores = self.softcap * torch.tanh(scores / self.softcap)
            context = (scores + bias).softmax(-1, dtype=torch.float32).to(q.dtype) @ v
        return self.o_proj(context.transpose(1, 2).reshape(batch, length, -1))

    def _normed(self, q, k):
        if self.knobs.qk_norm != "all heads":
            return self.q_norm(q), self.k_norm(k)
        return (norm_all_heads(x, norm) for x, norm in ((q, self.q_norm), (k, self.k_norm)))

    def _rotated(self, x, cos, sin):
        turn = rotate_every_two if self.knobs.is_interleaved else rotate_half
        size = cos.shape[-1]
        return torch.cat((x[..., :size] * cos + turn(x[..., :size]) * sin, x[..., size:]), -1)


def norm_all_heads(x, norm):
    mean_square = x.float().pow(2).mean((1, 3), keepdim=True)
    normed = x.float() * torch.rsqrt(mean_square + norm.variance_epsilon)
    return (normed * (norm.offset + norm.weight.float())).to(x.dtype)


class PortMLP(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        self.swaps = knobs.swaps_gate_and_up
        self.gate_proj = nn.Linear(config.hidden, config.inner, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.inner, bias=False)
        self.down_proj = nn.Linear(config.inner, config.hidden, bias=False)
        self.act_fn = activation(knobs.gelu or config.gelu)

    def forward(self, hidden_states):
        gate, up = self.gate_proj(hidden_states), self.up_proj(hidden_states)
        if self.swaps:
            gate, up = up, gate
        return self.down_proj(self.act_fn(gate) * up)


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


def activation(name):
    return {"tanh": nn.GELU("tanh"), "none": nn.GELU(), "quick": QuickGELU(), "silu": nn.SiLU(), "relu": nn.ReLU()}[
        name
    ]


class PortDecoderLayer(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs, index: int):
        super().__init__()
        eps = knobs.eps or config.eps
        offset = config.norm_offset if knobs.norm_offset is None else knobs.norm_offset
        self.topology = knobs.topology
        self.self_attn = PortAttention(config, knobs, is_local=index % 2 == 0)
        self.mlp = PortMLP(config, knobs)
        self.input_layernorm = PortRMSNorm(config.hidden, eps, offset, knobs.norm_casts_first)
        self.post_attention_layernorm = PortRMSNorm(config.hidden, eps, offset, knobs.norm_casts_first)
        self.dropout = nn.Dropout(knobs.dropout)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        normed = self.input_layernorm(hidden_states)
        attended = self.dropout(self.self_attn(normed, position_embeddings, attention_mask))
        if self.topology == "parallel":
            return hidden_states + attended + self.mlp(self.post_attention_layernorm(hidden_states))
        hidden_states = (normed if self.topology == "residual after norm" else hidden_states) + attended
        normed = self.post_attention_layernorm(hidden_states)
        if self.topology == "no second residual":
            return self.mlp(normed)
        return hidden_states + self.mlp(normed)


class PortModel(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab, config.hidden)
        self.layers = nn.ModuleList(PortDecoderLayer(config, knobs, index) for index in range(config.layers))
        eps = knobs.eps or config.eps
        offset = config.norm_offset if knobs.norm_offset is None else knobs.norm_offset
        self.norm = PortRMSNorm(config.hidden, eps, offset, knobs.norm_casts_first)
        self.rotary_emb = PortRotaryEmbedding(config, knobs)
        self.embedding_scale = config.hidden**0.5 if config.embedding_scale else 1.0
        if knobs.embedding_scale is not None:
            self.embedding_scale = knobs.embedding_scale

    def forward(self, input_ids, attention_mask=None):
        hidden_states = self.embed_tokens(input_ids) * self.embedding_scale
        positions = torch.arange(input_ids.shape[1])[None]
        position_embeddings = self.rotary_emb(hidden_states, positions)
        for layer in self.layers:
            hidden_states = layer(hidden_states, position_embeddings, attention_mask)
        return self.norm(hidden_states)


class PortForCausalLM(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        self.config = config
        self.model = PortModel(config, knobs)
        self.lm_head = nn.Linear(config.hidden, config.vocab, bias=config.head_bias)
        self.lm_head.weight = self.model.embed_tokens.weight
        self.cap = config.logit_cap if knobs.logit_cap == "same" else knobs.logit_cap

    def forward(self, input_ids, attention_mask=None):
        logits = self.lm_head(self.model(input_ids, attention_mask)).float()
        return torch.tanh(logits / self.cap) * self.cap if self.cap else logits


def halves_from_pairs(rows, heads):
    """Rows of a matrix whose heads hold pairs (0, 1), (2, 3) …, as heads that hold halves."""
    grouped = rows.view(heads, -1, 2, *rows.shape[1:])
    return grouped.transpose(1, 2).reshape(rows.shape)


def converted(original: AuthorsDecoder) -> dict[str, torch.Tensor]:
    """The port's state dict, as a right conversion script makes it."""
    config, theirs = original.config, original.state_dict()
    size, heads, kv_heads = config.head_size, config.heads, config.kv_heads
    ours = {
        "model.embed_tokens.weight": theirs["tok_embeddings.weight"],
        "lm_head.weight": theirs["tok_embeddings.weight"],
        "model.norm.weight": theirs["norm.scale"],
    }
    if config.head_bias:
        ours["lm_head.bias"] = theirs["output.bias"]
    renamed = {
        "attention_norm.scale": "input_layernorm.weight",
        "ffn_norm.scale": "post_attention_layernorm.weight",
        "attention.wo.weight": "self_attn.o_proj.weight",
        "feed_forward.w1.weight": "mlp.gate_proj.weight",
        "feed_forward.w2.weight": "mlp.down_proj.weight",
        "feed_forward.w3.weight": "mlp.up_proj.weight",
    }
    for index in range(config.layers):
        old, new = f"layers.{index}.", f"model.layers.{index}."
        ours |= {new + name: theirs[old + theirs_name] for theirs_name, name in renamed.items()}
        for kind in ("weight", "bias") if config.query_bias else ("weight",):
            q, k, v = theirs[f"{old}attention.wqkv.{kind}"].split([heads * size, kv_heads * size, kv_heads * size])
            ours[f"{new}self_attn.q_proj.{kind}"] = halves_from_pairs(q, heads)
            ours[f"{new}self_attn.k_proj.{kind}"] = halves_from_pairs(k, kv_heads)
            ours[f"{new}self_attn.v_proj.{kind}"] = v
        if config.qk_norm:
            for letter in "qk":
                scale = theirs[f"{old}attention.norm_{letter}.scale"]
                ours[f"{new}self_attn.{letter}_norm.weight"] = halves_from_pairs(scale, 1)
    return {name: tensor.clone() for name, tensor in ours.items()}


def original(config: DecoderConfig) -> AuthorsDecoder:
    """With weights as a trained model's: norms away from their initial value, biases not zero."""
    torch.manual_seed(11)
    model = AuthorsDecoder(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                centre = 0.0 if config.norm_offset else 1.0
                parameter.normal_(centre, 0.2)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.3)
            elif parameter.dim() == 2:
                parameter.normal_(0, 0.8 / parameter.shape[1] ** 0.5)
    return model
