"""Small traces written by hand, and traces of small models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from twinlens.tracing.context import model_addition_debugger_context


class Block(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.act(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width: int = 8, layers: int = 3):
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def net(seed: int = 0) -> Net:
    torch.manual_seed(seed)
    return Net().eval()


def inputs() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 5, 8)


def write_trace(folder: Path, model: nn.Module, *args: Any, **options: Any) -> Path:
    """The trace of one forward in Twinlens' own format; `options` are the context's."""
    with model_addition_debugger_context(model, str(folder), packed=True, **options):
        model(*args)
    return folder
