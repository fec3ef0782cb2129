"""What several tests of this room use."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn


class Block(nn.Module):
    """Two linear maps and a residual sum, which no module of its own computes."""

    def __init__(self, size):
        super().__init__()
        self.up = nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)

    def forward(self, hidden_states, scale=1.0):
        return hidden_states + scale * self.down(torch.relu(self.up(hidden_states)))


class Net(nn.Module):
    def __init__(self, size=4, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(Block(size) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, scale=0.5)
        return x


@pytest.fixture
def net():
    torch.manual_seed(673)
    return Net()


@pytest.fixture
def read_json():
    """Reads a file that must be JSON by the letter: no NaN literal in it."""
    return lambda path: json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
