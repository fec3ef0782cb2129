"""All points at which the two traces can be compared: how far apart, and which call shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinlens.diffing.limits import Limits
from twinlens.diffing.padding import error_on_real_tokens, padding_of
from twinlens.diffing.points import Comparison, PairedCall, Point
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array


@dataclass(frozen=True, slots=True)
class Origin:
    """A tensor that differs while all that it is made of agrees."""

    reference_frame: int
    port_frame: int
    """The calls whose code made it (of functions, the module around them)."""
    point: Point
    error: float
    time: int
    """When the reference's trace shows it first."""
    seen_by: PairedCall
    """The pair of calls that shows it."""


def effective(point: Point) -> float:
    """The relative error, columns in the order that the weights say; 0 where nothing could be compared."""
    return point.error


class Differences:
    """`points`, `at` and `agreeing_ports` of two traces' paired calls."""

    def __init__(self, comparison: Comparison, calls: list[PairedCall], limits: Limits) -> None:
        self.comparison = comparison
        self.limits = limits
        self.reference, self.port = comparison.reference, comparison.port
        self.points: dict[int, tuple[Point, PairedCall]] = {}
        """By reference tensor id: the point at which it lies nearest to its partner."""
        self.at: dict[tuple[int, str], list[tuple[Point, PairedCall]]] = {}
        """By the reference's call and its side: what is shown there."""
        self.agreeing_ports: dict[int, set[int]] = {}
        """By port tensor id: the reference tensors that it agrees with."""
        self.is_any_beyond = False
        """Whether anything differs by more than noise."""
        masks = (padding_of(side) for side in (self.reference, self.port))
        self._padding = next((mask for mask in masks if mask is not None), None)
        self._errors: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        for item in calls:
            for point in (*item.inputs, *item.outputs):
                self._note(point, item)

    def error(self, point: Point) -> float:
        """The relative error; of a tensor that agrees but for padding, that of its real tokens."""
        whole = effective(point)
        if self._padding is None or whole <= self.limits.floor(point):
            return whole
        if point.key not in self._errors:
            self._errors[point.key] = min(whole, self._on_real_tokens(point, self._padding))
        return self._errors[point.key]

    def _on_real_tokens(self, point: Point, mask: Array) -> float:
        if len(point.reference) + len(point.port) > 2 or point.difference.basis != "values":
            return math.inf
        pairs = ((self.reference, point.reference[0]), (self.port, point.port[0]))
        both = conformed(*(side.values.array(tensor) for side, tensor in pairs))
        error = error_on_real_tokens(*both, mask) if both is not None else None
        return math.inf if error is None else error

    def _note(self, point: Point, item: PairedCall) -> None:
        if not point.difference.is_comparable:
            return
        error, floor = self.error(point), self.limits.floor(point)
        shown = point, item
        self.at.setdefault((self._shown_by(point, item), point.side), []).append(shown)
        for tensor in point.reference:
            known = self.points.get(tensor.id)
            if known is None or error < self.error(known[0]):
                self.points[tensor.id] = shown
        if error > floor:
            self.is_any_beyond = True
        else:
            for tensor in point.port:
                self.agreeing_ports.setdefault(tensor.id, set()).update([t.id for t in point.reference])

    def _shown_by(self, point: Point, item: PairedCall) -> int:
        """The reference's call that shows a point; of the outputs of several, the first that differs, or the last."""
        if point.side == "inputs":
            return item.reference[0]
        if len(item.reference) == 1 or not self.is_beyond(point):
            return item.reference[-1]
        floor = self.limits.floor(point)
        parts = self.comparison.parts(item.pair, point)
        if len(point.reference) == len(item.reference) == len(parts):
            return next(
                (call for call, part in zip(item.reference, parts, strict=True) if part.error > floor),
                item.reference[-1],
            )
        return item.reference[-1]

    def is_beyond(self, point: Point) -> bool:
        """Whether the error is more than noise."""
        return self.error(point) > self.limits.floor(point)

    def differs(self, tensor: int) -> bool | None:
        """Whether the reference's tensor of that id lies apart from its partner; None where it has none."""
        known = self.points.get(tensor)
        return None if known is None else self.is_beyond(known[0])

    def worst_error(self, point: Point, item: PairedCall) -> float:
        """Of several modules joined, that of the one that differs most: what is made of it alone differs as much."""
        error = self.error(point)
        if error <= self.limits.floor(point):
            return error
        return max([error, *(part.error for part in self.comparison.parts(item.pair, point))])
