"""A BERT-like encoder as its authors wrote it: learned positions, norms after the residual, a fused projection."""

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
