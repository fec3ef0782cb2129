"""A decoder with grouped-query attention and RoPE as its authors wrote it.

They keep q, k and v in one matrix, rotate pairs as complex numbers and scale the embedding.
"""

from __future__ import annotations

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
    gate_limit: float | None = None
    post_norms: bool = False

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
        self.limit = config.gate_limit

    def forward(self, x):
        gate, value = self.w1(x), self.w3(x)
        if self.limit:
            gate, value = gate.clamp(max=self.limit), value.clamp(-self.limit, self.limit)
        return self.w2(F.gelu(gate, approximate=self.gelu) * value)


class AuthorsBlock(nn.Module):
    def __init__(self, config: DecoderConfig, index: int):
        super().__init__()
        self.attention_norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)
        self.attention = AuthorsAttention(config, is_local=index % 2 == 0)
        self.ffn_norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)
        self.feed_forward = AuthorsFeedForward(config)
        if config.post_norms:
            self.post_attention_norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)
            self.post_ffn_norm = OffsetNorm(config.hidden, config.eps, config.norm_offset)

    def forward(self, x, freqs_cis, padding=None):
        attended = self.attention(self.attention_norm(x), freqs_cis, padding)
        x = x + (self.post_attention_norm(attended) if hasattr(self, "post_attention_norm") else attended)
        made = self.feed_forward(self.ffn_norm(x))
        return x + (self.post_ffn_norm(made) if hasattr(self, "post_ffn_norm") else made)


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
