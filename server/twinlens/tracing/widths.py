"""The widths of a model, and by how much all of them can be divided at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from twinlens.tracing import fields as names
from twinlens.tracing.fields import is_count
from twinlens.tracing.plans import Plan

SMALLEST_EQUAL_WIDTH = 64
"""A number that equals a width may be one by chance; from here on it is taken for one."""


def sub_configs(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, value in fields.items():
        is_config = isinstance(value, Mapping) and ("model_type" in value or name.endswith("_config"))
        if is_config and not is_by_layer(name, value):
            yield name, value


def is_by_layer(name: str, value: Mapping[Any, Any]) -> bool:
    """Whether `value` maps indices of layers to what is theirs."""
    return name.startswith("per_layer") and all(str(key).isdigit() for key in value)


def configs(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield fields
    for _name, sub in sub_configs(fields):
        yield from configs(sub)


def width_divisor(fields: Mapping[str, Any], plan: Plan) -> int:
    """The largest power of two by which every width can be divided within the plan."""
    heads = [head for config in configs(fields) for head in _head_dimensions(config)]
    sections = list(_sections(fields))
    widest = max(
        (value for config in configs(fields) for name, value in config.items() if names.is_hidden_size(name, value)),
        default=0,
    )
    if not plan.smallest_head or not heads:
        return 1
    counts = [
        value
        for config in configs(fields)
        for name, value in config.items()
        if is_count(value) and value > 1 and names.HEADS.search(name)
    ]

    def allows(divisor: int) -> bool:
        if widest // divisor < plan.widest:
            return False
        if plan.fewer_heads:
            return all(count % divisor == 0 or divisor % count == 0 for count in counts)
        return all(head // divisor >= plan.smallest_head and _stays_even(head, divisor) for head in heads) and all(
            section % divisor == 0 for section in sections
        )

    divisor = 1
    while allows(divisor * 2):
        divisor *= 2
    return divisor


def _stays_even(head: int, divisor: int) -> bool:
    """Rotary position embeddings turn the dimensions of a head in pairs."""
    return head % (2 * divisor if head % 2 == 0 else divisor) == 0


def _head_dimensions(config: Mapping[str, Any]) -> list[int]:
    """Every head dimension that the config states, or that follows from a hidden size and a number of heads."""
    stated = [value for name, value in config.items() if is_count(value) and value > 0 and names.HEAD_SIZE.search(name)]
    hidden = [value for name, value in config.items() if names.is_hidden_size(name, value)]
    heads = [value for name, value in config.items() if is_count(value) and value > 0 and names.HEADS.search(name)]
    if not stated and hidden and heads:
        stated = [size // math.gcd(size, max(heads)) for size in hidden]
    return stated


def _sections(fields: Mapping[str, Any]) -> Iterator[int]:
    """Parts that a head dimension is divided into for positions of several axes."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _sections(value)
        elif str(name).endswith("_section") and isinstance(value, (list, tuple)):
            yield from value


def widths(fields: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(
        item
        for config in configs(fields)
        for name, value in config.items()
        if names.is_width(name)
        for item in (value if isinstance(value, (list, tuple)) else [value])
        if is_count(item) and item >= SMALLEST_EQUAL_WIDTH
    )
