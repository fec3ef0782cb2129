"""Whether two modules own the same parameters: by fingerprints, and by statistics where a cast changed every value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twinlens.diffing.alike import elements
from twinlens.diffing.nodes import Node
from twinlens.diffing.noise import noise_of
from twinlens.tracing.record import Parameter, values_of_joined


def fingerprints(nodes: Iterable[Node]) -> dict[tuple[str, int], str | None]:
    """By the hash of a parameter's values and their number, since zeros add nothing to the hash: the node that owns it;
    None where several do, or the parameter is tied."""
    found: dict[tuple[str, int], str | None] = {}
    for node in nodes:
        for parameter in node.parameters:
            if parameter.fingerprint is None or parameter.is_buffer or elements(parameter.tensor.shape) < 2:
                continue
            key = parameter.fingerprint.values, elements(parameter.tensor.shape)
            found[key] = node.path if key not in found else None
    return found


def joined_hash(nodes: Iterable[Node]) -> str | None:
    """Of the values of the nodes' matrices together; None where one has no hash."""
    hashes = [weight_hash(node) for node in nodes]
    known = [item for item in hashes if item is not None]
    return values_of_joined(known) if len(known) == len(hashes) else None


def alike_parameters(ours: list[Node], theirs: list[Node]) -> Iterator[tuple[str, str]]:
    """Owners of parameters whose statistics say that one is the other cast to another dtype."""
    by_count: dict[int, list[tuple[Node, Parameter]]] = {}
    for node in theirs:
        for parameter in node.parameters:
            if _has_shape_of_values(parameter):
                by_count.setdefault(elements(parameter.tensor.shape), []).append((node, parameter))
    for node in ours:
        for parameter in node.parameters:
            if not _has_shape_of_values(parameter):
                continue
            alike = [
                other.path
                for other, candidate in by_count.get(elements(parameter.tensor.shape), ())
                if parameter.tensor.dtype != candidate.tensor.dtype
                and _alike(_moments((parameter,)), _moments((candidate,)))
            ]
            if len(alike) == 1:
                yield node.path, alike[0]


def _has_shape_of_values(parameter: Parameter) -> bool:
    """Whether its statistics tell it from others: neither constant nor a handful of numbers."""
    statistics = parameter.tensor.statistics
    return (
        not parameter.is_buffer
        and statistics is not None
        and statistics.std > 0
        and elements(parameter.tensor.shape) > 8
    )


@dataclass(frozen=True, slots=True)
class _Moments:
    """Of the values of one or more tensors together."""

    count: int
    total: float
    squares: float
    low: float
    high: float
    unit: float


def _moments(parameters: Iterable[Parameter]) -> _Moments | None:
    count, total, squares, low, high, unit = 0, 0.0, 0.0, math.inf, -math.inf, 0.0
    for parameter in parameters:
        statistics = parameter.tensor.statistics
        if statistics is None:
            return None
        own = elements(parameter.tensor.shape)
        count += own
        total += statistics.mean * own
        squares += statistics.l2**2
        low, high = min(low, statistics.min), max(high, statistics.max)
        unit = max(unit, noise_of([parameter.tensor.dtype]).unit)
    return _Moments(count, total, squares, low, high, unit)


def _alike(one: _Moments | None, other: _Moments | None) -> bool:
    """Whether two sets of values are one but for rounding: it moves sums by far less than chance does."""
    if one is None or other is None or one.count != other.count or one.squares == 0:
        return False
    unit = max(one.unit, other.unit)
    size = math.sqrt(one.squares)
    return (
        abs(one.squares - other.squares) <= 4 * unit * one.squares / math.sqrt(one.count) + unit * unit * one.squares
        and abs(one.total - other.total) <= 4 * unit * size
        and abs(one.low - other.low) <= 2 * unit * abs(one.low)
        and abs(one.high - other.high) <= 2 * unit * abs(one.high)
    )


def alike_group(node: Node, groups: list[tuple[Node, ...]]) -> tuple[Node, ...] | None:
    own = _matrix(node)
    if own is None:
        return None
    moments = _moments((own,))
    for some in groups:
        parts = [found for found in map(_matrix, some) if found is not None]
        if parts and parts[0].tensor.dtype != own.tensor.dtype and _alike(moments, _moments(parts)):
            return some
    return None


def _matrix(node: Node) -> Parameter | None:
    return next((item for item in node.parameters if len(item.tensor.shape) >= 2 and not item.is_buffer), None)


def weight_hash(node: Node) -> str | None:
    """The hash of the values of a projection's matrix."""
    matrix = _matrix(node)
    return matrix.fingerprint.values if matrix is not None and matrix.fingerprint is not None else None


def neighbours(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    """Nodes with a matrix of their own that one module calls, in runs of at most 8."""
    groups: dict[str | None, list[Node]] = {}
    for node in nodes:
        if weight_hash(node) is not None:
            groups.setdefault(node.parent, []).append(node)
    for group in groups.values():
        for start in range(0, len(group), 4):
            yield group[start : start + 8]
