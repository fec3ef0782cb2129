"""Which of the reference's tensors stand for each of the port's in a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from twinlens.diffing.feeding import Feed
from twinlens.diffing.points import Comparison, PairedCall, Point
from twinlens.diffing.values import Array


def input_feeds(item: PairedCall) -> Iterator[Feed]:
    for point in item.inputs:
        if _fits(point):
            yield Feed(point.place_port, tuple(t.id for t in point.reference))


def output_feeds(comparison: Comparison, item: PairedCall, place: int) -> Iterator[Feed]:
    """What the reference returned, for the port's module number `place` of the pair."""
    columns = comparison.columns(item.pair)
    for point in item.outputs:
        if not _fits(point):
            continue
        tensors = tuple(t.id for t in point.reference)
        if len(point.port) == 1:
            yield Feed(point.place_port, tensors, None if columns is None else tuple(map(int, columns)))
            continue
        start = sum(t.shape[-1] for t in point.port[:place])
        own = range(start, start + point.port[place].shape[-1])
        chosen = own if columns is None else columns[list(own)]
        yield Feed(point.place_port, tensors, tuple(map(int, chosen)))


def _fits(point: Point) -> bool:
    return point.difference.basis == "values"


def substitutes(comparison: Comparison, calls: list[PairedCall]) -> dict[int, Callable[[], Array]]:
    """By the port's tensor id: how to make what the replay gave to its code instead."""
    found: dict[int, Callable[[], Array]] = {}
    for item in calls:
        for point in item.inputs:
            if _fits(point):
                found[point.port[0].id] = partial(_joined, comparison, point, None)
        for point in item.outputs:
            for place, tensor in enumerate(point.port):
                for feed in output_feeds(comparison, item, place):
                    if feed.place == point.place_port:
                        found[tensor.id] = partial(_joined, comparison, point, feed.columns)
    return found


def _joined(comparison: Comparison, point: Point, columns: tuple[int, ...] | None) -> Array:
    parts = [comparison.reference.values.array(tensor) for tensor in point.reference]
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts, -1)
    return whole if columns is None else whole[..., list(columns)]
