"""Pair the tensors of paired calls, and compare each pair once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from twinlens.diffing.align import Alignment, Pair
from twinlens.diffing.columns import Columns, coarser, completed, is_plain, output_rows, partial_row_map
from twinlens.diffing.compare import (
    SAME,
    Difference,
    Tolerance,
    compare_arrays,
    compare_printed,
    compare_statistics,
    relative_error,
    same_bytes,
)
from twinlens.diffing.mapfile import IDENTITY
from twinlens.diffing.nodes import Side
from twinlens.diffing.shapes import conformed, joined, may_conform, transformed
from twinlens.diffing.values import Array
from twinlens.tracing.record import Call, Slot, Statistics, Tensor

SlotSide = Literal["inputs", "outputs"]
_MARGIN = 1e-3
_BLOCKED = -5e3
"""Attention scores below it are masked: code bases add -10,000, -1e9 or the smallest number of the dtype."""
_ENOUGH_ROWS = 0.3
"""Share of a fused projection's rows that must be found again for the others' places to follow."""


class Point(NamedTuple):
    """A tensor of the reference (or several that are joined into one) and the port's that stands for it."""

    side: SlotSide
    place_reference: str
    place_port: str
    reference: tuple[Tensor, ...]
    port: tuple[Tensor, ...]
    difference: Difference
    permuted: Difference | None
    """The difference once the columns are in the order that the weights say; None where that order is the same."""
    error: float
    """The smaller relative error of the two; 0 where nothing could be compared."""

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(t.id for t in self.reference), tuple(t.id for t in self.port)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the modules that together stand for one: where its columns start among theirs, which columns of the one
    they are, and the relative error of the two."""

    start: int
    columns: Columns
    error: float


class PairedCall(NamedTuple):
    """One call of a pair of modules, on both sides."""

    pair: Pair
    reference: tuple[int, ...]
    port: tuple[int, ...]
    """Indices of the calls."""
    inputs: tuple[Point, ...]
    outputs: tuple[Point, ...]
    note: str = ""
    """Why not all could be compared."""


@dataclass(slots=True)
class Comparison:
    """Compares the pairs of calls of one alignment. `columns` is by pair: the order of the reference's outputs in the
    port's."""

    reference: Side
    port: Side
    alignment: Alignment
    tolerance: Tolerance
    _columns: dict[tuple[str, ...], Columns | None] = field(default_factory=dict)
    _done: dict[tuple[object, ...], tuple[Difference, Difference | None, float]] = field(default_factory=dict)

    def paired_calls(self) -> Iterator[PairedCall]:
        """In the order in which the reference entered them."""
        found: list[tuple[Pair, tuple[int, ...], tuple[int, ...]]] = []
        for pair in self.alignment.pairs:
            ours, theirs = self._calls(self.reference, pair.reference), self._calls(self.port, pair.port)
            found += [(pair, ours[key], theirs[key]) for key in ours if key in theirs]
        for pair, ours, theirs in sorted(found, key=lambda item: item[1]):
            yield self._paired_call(pair, ours, theirs)

    def _calls(self, side: Side, paths: tuple[str, ...]) -> dict[tuple[int, int], tuple[int, ...]]:
        """By forward and number: the calls of all `paths`."""
        if len(paths) == 1:
            own = [side.trace.calls[index] for index in side.nodes[paths[0]].calls]
            return {(call.forward, call.number): (call.index,) for call in own}
        calls: dict[tuple[int, int], tuple[int, ...]] = {}
        for path in paths:
            for index in side.nodes[path].calls:
                call = side.trace.calls[index]
                key = (call.forward, call.number)
                calls[key] = (*calls.get(key, ()), index)
        return {key: indices for key, indices in calls.items() if len(indices) == len(paths)}

    def _paired_call(self, pair: Pair, ours: tuple[int, ...], theirs: tuple[int, ...]) -> PairedCall:
        reference = [self.reference.trace.calls[index] for index in ours]
        port = [self.port.trace.calls[index] for index in theirs]
        matched = match_slots(reference[0].inputs, port[0].inputs)
        inputs = tuple([self._point("inputs", (a,), (b,), pair) for a, b in matched])
        if pair.is_group:
            outputs = tuple(self._joined_point(pair, reference, port))
        else:
            matched = match_slots(reference[0].outputs, port[0].outputs)
            outputs = tuple([self._point("outputs", (a,), (b,), pair) for a, b in matched])
        return PairedCall(pair, ours, theirs, inputs, outputs, self._note(reference, port, outputs))

    def _note(self, reference: list[Call], port: list[Call], outputs: tuple[Point, ...]) -> str:
        for call in (*port, *reference):
            if call.error is not None:
                return f"{call.path} raised {call.error.type}: {call.error.message}"
        if not outputs and _tensors(reference[0].outputs) and _tensors(port[0].outputs):
            ours, theirs = _tensors(reference[0].outputs)[0].tensor, _tensors(port[0].outputs)[0].tensor
            if ours is not None and theirs is not None:
                return f"shapes {list(ours.shape)} and {list(theirs.shape)} cannot be matched"
        return ""

    def _joined_point(self, pair: Pair, reference: list[Call], port: list[Call]) -> Iterator[Point]:
        ours = tuple(slot for call in reference for slot in _tensors(call.outputs)[:1])
        theirs = tuple(slot for call in port for slot in _tensors(call.outputs)[:1])
        if len(ours) == len(reference) and len(theirs) == len(port):
            yield self._point("outputs", ours, theirs, pair)

    def _point(self, side: SlotSide, ours: tuple[Slot, ...], theirs: tuple[Slot, ...], pair: Pair) -> Point:
        reference = tuple([slot.tensor for slot in ours if slot.tensor is not None])
        port = tuple([slot.tensor for slot in theirs if slot.tensor is not None])
        places = ours[0].place, theirs[0].place
        if side == "inputs" and self.reference.nodes[pair.reference[0]].kind == "softmax":
            scores = self._of_scores(reference[0], port[0])
            return Point(side, *places, reference, port, scores, None, _least_error(scores, None))
        columns = self._columns_of(pair) if side == "outputs" else None
        is_plain_pair = side == "inputs" or (columns is None and pair.transform.is_identity)
        key = (*[t.id for t in reference], -1, *[t.id for t in port], None if is_plain_pair else pair)
        done = self._done.get(key)
        if done is None:
            difference, permuted = self._compared(reference, port, pair if side == "outputs" else None, columns)
            done = self._done[key] = difference, permuted, _least_error(difference, permuted)
        return Point(side, *places, reference, port, *done)

    def _compared(
        self, reference: tuple[Tensor, ...], port: tuple[Tensor, ...], pair: Pair | None, columns: Columns | None
    ) -> tuple[Difference, Difference | None]:
        if not self.reference.values.has_all(reference) or not self.port.values.has_all(port):
            return self._without_values(reference, port), None
        single = len(reference) == len(port) == 1
        plain = pair is None or pair.transform.is_identity
        if single and plain and columns is None:
            return self._of_two(reference[0], port[0]), None
        return self._rearranged(reference, port, pair, columns)

    def _of_two(self, r: Tensor, p: Tensor) -> Difference:
        if r.dtype == p.dtype and r.shape == p.shape and not r.pieces and not p.pieces:
            ours, theirs = self.reference.values.raw(r), self.port.values.raw(p)
            if same_bytes(ours, theirs) and not _non_finite(r):
                return SAME._replace(reference=math.nan)
        ours, theirs = self.reference.values.array(r), self.port.values.array(p)
        both = conformed(ours, theirs)
        if both is None:
            return _incomparable(r, p)
        return compare_arrays(*both, self.tolerance)

    def _of_scores(self, r: Tensor, p: Tensor) -> Difference:
        """What goes into a softmax: numbers that masks made very small count as one infinity."""
        if not self.reference.values.has(r) or not self.port.values.has(p):
            return self._without_values((r,), (p,))
        both = conformed(self.reference.values.array(r), self.port.values.array(p))
        if both is None:
            return _incomparable(r, p)
        ours, theirs = (np.where(x < _BLOCKED, -np.inf, x) for x in both)
        return compare_arrays(ours, theirs, self.tolerance)

    def _rearranged(
        self, reference: tuple[Tensor, ...], port: tuple[Tensor, ...], pair: Pair | None, columns: Columns | None
    ) -> tuple[Difference, Difference | None]:
        transform = pair.transform if pair else IDENTITY
        try:
            ours = joined([self.reference.values.array(t) for t in reference], transform)
            theirs = joined([self.port.values.array(t) for t in port], transform)
            both = conformed(transformed(ours, transform), theirs)
        except (ValueError, IndexError) as error:
            return Difference("nothing", math.nan, note=f"the map file's operation does not fit: {error}"), None
        if both is None:
            return _incomparable(reference[0], port[0]), None
        straight = compare_arrays(*both, self.tolerance)
        if columns is not None and both[0].shape[-1:] == (len(columns),):
            return straight, compare_arrays(both[0][..., columns], both[1], self.tolerance)
        if len(reference) + len(port) > 2 and straight.relative > _MARGIN:
            return straight, self._best_interleaving(*both)
        return straight, None

    def _best_interleaving(self, r: Array, p: Array) -> Difference | None:
        """Of fused projections whose weights were not kept: blocks of each head side by side."""
        width = r.shape[-1]
        best: Difference | None = None
        for parts in (2, 3):
            for heads in range(2, min(129, width)):
                if width % (parts * heads):
                    continue
                block = r.reshape(*r.shape[:-1], parts, heads, -1)
                for turned in (np.swapaxes(block, -3, -2), r.reshape(*r.shape[:-1], heads, parts, -1).swapaxes(-3, -2)):
                    error = relative_error(p, turned.reshape(r.shape))
                    if error < _MARGIN and (best is None or error < best.relative):
                        best = compare_arrays(turned.reshape(r.shape), p, self.tolerance)
        return best

    def _without_values(self, reference: tuple[Tensor, ...], port: tuple[Tensor, ...]) -> Difference:
        if len(reference) != 1 or len(port) != 1:
            return Difference("nothing", math.nan, note="several tensors are joined, and their values were not kept")
        r, p = reference[0], port[0]
        if not may_conform(r.shape, p.shape):
            return _incomparable(r, p)
        ours, theirs = self.reference.values.printed(r), self.port.values.printed(p)
        if ours is not None and theirs is not None:
            printed = compare_printed(ours, theirs)
            if printed.is_comparable:
                return printed
        if r.statistics is None or p.statistics is None:
            return Difference("nothing", math.nan, note=r.omitted or p.omitted or "no statistics were kept")
        return compare_statistics(r.statistics, p.statistics, tuple(self._profiles(r, p)))

    def _profiles(self, r: Tensor, p: Tensor) -> Iterator[tuple[Array, Array]]:
        if r.shape != p.shape:
            return
        for ours, theirs, shape in (
            (r.token_norms, p.token_norms, r.shape[:-1]),
            (r.channel_norms, p.channel_norms, r.shape[-1:]),
        ):
            if ours is None or theirs is None:
                continue
            length = math.prod(shape)
            profiles = self.reference.values.norms(ours, length), self.port.values.norms(theirs, length)
            if profiles[0] is not None and profiles[1] is not None:
                yield profiles[0], profiles[1]

    def _columns_of(self, pair: Pair) -> Columns | None:
        """The order of the reference's outputs in the port's where the weights say that it is another one."""
        key = pair.reference
        if key not in self._columns:
            self._columns[key] = self._found_columns(pair)
        return self._columns[key]

    def columns(self, pair: Pair) -> Columns | None:
        return self._columns_of(pair)

    def _found_columns(self, pair: Pair) -> Columns | None:
        if not pair.transform.is_identity:
            return None
        ours = [self.reference.nodes[path] for path in pair.reference]
        theirs = [self.port.nodes[path] for path in pair.port]
        if any(node.is_function or not node.parameters for node in (*ours, *theirs)):
            return None
        if not pair.is_group and _equal_weights(ours[0].parameters, theirs[0].parameters):
            return None
        rows = [output_rows(self.reference, node) for node in ours]
        other_rows = [output_rows(self.port, node) for node in theirs]
        known = [item for item in rows if item is not None]
        other_known = [item for item in other_rows if item is not None]
        if len(known) < len(rows) or len(other_known) < len(other_rows):
            return None
        dtype = coarser(ours[0].parameters[0].tensor.dtype, theirs[0].parameters[0].tensor.dtype)
        try:
            columns = partial_row_map(np.concatenate(known), np.concatenate(other_known), dtype)
        except ValueError:
            return None
        if columns is None:
            return None
        known_share = float(np.mean(columns >= 0))
        if known_share < (_ENOUGH_ROWS if pair.is_group else 1.0):
            return None
        columns = completed(columns)
        return None if is_plain(columns) else columns

    def parts(self, pair: Pair, point: Point) -> list[Part]:
        """Of a group's outputs: each module of the joined side with the columns that it stands for and its error."""
        many = point.port if len(point.port) > 1 else point.reference
        if len(many) < 2 or point.side != "outputs":
            return []
        if not all(map(self.reference.values.has, point.reference)) or not all(map(self.port.values.has, point.port)):
            return []
        ours = joined([self.reference.values.array(t) for t in point.reference], pair.transform)
        theirs = joined([self.port.values.array(t) for t in point.port], pair.transform)
        columns = self._columns_of(pair)
        columns = np.arange(ours.shape[-1]) if columns is None else columns
        if len(point.reference) > 1:  # the parts are the reference's: ask where the port keeps them
            ours, theirs, columns = theirs, ours, np.argsort(columns)
        found: list[Part] = []
        start = 0
        for tensor in many:
            own = columns[start : start + tensor.shape[-1]]
            values = theirs[..., start : start + tensor.shape[-1]]
            found.append(Part(start, own, relative_error(values, ours[..., own])))
            start += tensor.shape[-1]
        return found


def _least_error(difference: Difference, permuted: Difference | None) -> float:
    if permuted is None:
        return difference.relative if difference.is_comparable else 0.0
    return min((item.relative for item in (difference, permuted) if item.is_comparable), default=0.0)


def match_slots(ours: tuple[Slot, ...], theirs: tuple[Slot, ...]) -> list[tuple[Slot, Slot]]:
    """Tensors that stand for each other: of equal place, then of equal statistics, then in their order."""
    left, right = _tensors(ours), _tensors(theirs)
    if len(left) == len(right) == 1:
        return [(left[0], right[0])] if _may_match(left[0], right[0]) else []
    found: dict[int, tuple[Slot, Slot]] = {}
    for is_same in (_same_place, _same_statistics, _may_match):
        for place, slot in enumerate(left):
            if place in found:
                continue
            match = next((other for other in right if _may_match(slot, other) and is_same(slot, other)), None)
            if match is not None:
                right.remove(match)
                found[place] = (slot, match)
    return [found[place] for place in sorted(found)]


def _tensors(slots: tuple[Slot, ...]) -> list[Slot]:
    return [slot for slot in slots if slot.tensor is not None]


def _may_match(slot: Slot, other: Slot) -> bool:
    a, b = slot.tensor, other.tensor
    if a is None or b is None or (a.dtype != b.dtype and _sort(a.dtype) != _sort(b.dtype)):
        return False
    return a.shape == b.shape or may_conform(a.shape, b.shape)


@cache
def _sort(dtype: str) -> str:
    if "complex" in dtype:
        return "complex"
    return "whole" if dtype == "bool" or "int" in dtype else "floating"


def _same_place(slot: Slot, other: Slot) -> bool:
    return slot.place == other.place


def _same_statistics(slot: Slot, other: Slot) -> bool:
    a, b = (item.tensor.statistics if item.tensor else None for item in (slot, other))
    if a is None or b is None or slot.tensor is None or other.tensor is None:
        return False
    if _is_mask(a) and _is_mask(b):  # of -inf on one side, of a very small number on the other
        return a.zeros * math.prod(other.tensor.shape) == b.zeros * math.prod(slot.tensor.shape)
    return all(
        x == y or abs(x - y) <= _MARGIN * max(abs(x), abs(y))
        for x, y in ((a.l2, b.l2), (a.absmax, b.absmax), (a.std, b.std))
    )


def _is_mask(statistics: Statistics) -> bool:
    """Whether values are 0 or block, as those that are added to scores."""
    return statistics.max == 0 and (statistics.negative_infinities > 0 or statistics.min < _BLOCKED)


def _non_finite(tensor: Tensor) -> bool:
    statistics = tensor.statistics
    return statistics is not None and bool(
        statistics.nans or statistics.positive_infinities or statistics.negative_infinities
    )


def _incomparable(r: Tensor, p: Tensor) -> Difference:
    return Difference("nothing", math.nan, note=f"shapes {list(r.shape)} and {list(p.shape)} cannot be matched")


def _equal_weights(ours: tuple, theirs: tuple) -> bool:
    """Whether fingerprints say that both modules hold the same values in the same order."""
    prints = [[item.fingerprint.ordered if item.fingerprint else None for item in side] for side in (ours, theirs)]
    return None not in prints[0] and prints[0] == prints[1]
