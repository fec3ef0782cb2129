"""How many elements of a tensor are worked on at a time."""

from __future__ import annotations

import torch

_OF_ONE_THREAD = 32_000
"""torch shares larger ones among its threads, and waits for the last, which is long beside a busy machine."""
_OF_MANY = 300_000
"""Larger ones come from memory each time, smaller ones cost more calls of torch."""


def piece_elements() -> int:
    return _OF_MANY if torch.get_num_threads() == 1 else _OF_ONE_THREAD
