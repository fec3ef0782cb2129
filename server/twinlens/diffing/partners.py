"""Which tensors of the two traces stand for each other, halves and alternating columns of fused ones among them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.evidence import Identity
from twinlens.diffing.columns import Columns
from twinlens.diffing.differences import effective
from twinlens.diffing.points import Comparison, PairedCall, Point
from twinlens.tracing.record import Tensor

_ENOUGH = 0.9
"""Share of the columns that must stand where a part of the other side has them."""


def partner_identities(comparison: Comparison, calls: list[PairedCall]) -> Iterator[tuple[Identity, Identity]]:
    """The port's tensor, or a part of it, and the reference's; of several partners the most alike comes last."""
    points = {point.key: (point, item) for item in calls for point in (*item.inputs, *item.outputs)}
    for point, item in sorted(points.values(), key=lambda found: effective(found[0]), reverse=True):
        if not point.difference.is_comparable:
            continue
        if len(point.reference) == len(point.port) == 1:
            yield Identity(point.port[0].id), Identity(point.reference[0].id)
        if point.side == "outputs":
            yield from _partners_of_parts(point, comparison.columns(item.pair))


def _partners_of_parts(point: Point, columns: Columns | None) -> Iterator[tuple[Identity, Identity]]:
    many = max(len(point.reference), len(point.port))
    width = sum(tensor.shape[-1] for tensor in point.port if tensor.shape)
    is_split = many == 2 and min(len(point.reference), len(point.port)) == 1
    if width % 2 or not (is_split or (many == 1 and columns is not None)):
        return
    columns = np.arange(width) if columns is None or len(columns) != width else columns
    parts = _parts(width)
    for theirs, chosen in _of_side(point.port, parts):
        for ours, wanted in _of_side(point.reference, parts):
            if len(chosen) == len(wanted) and np.mean(columns[chosen] == wanted) >= _ENOUGH:
                yield theirs, ours


def _of_side(tensors: tuple[Tensor, ...], parts: dict[str, Columns]) -> Iterator[tuple[Identity, Columns]]:
    """Each tensor of several, or each part of one, and which columns of the whole it is."""
    if len(tensors) == 1:
        yield from ((Identity(tensors[0].id, name), columns) for name, columns in parts.items())
        return
    start = 0
    for tensor in tensors:
        yield Identity(tensor.id), np.arange(start, start + tensor.shape[-1])
        start += tensor.shape[-1]


def _parts(width: int) -> dict[str, Columns]:
    whole, half = np.arange(width), width // 2
    return {"first": whole[:half], "second": whole[half:], "even": whole[::2], "odd": whole[1::2]}
