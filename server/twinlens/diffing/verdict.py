"""Judge every pair of calls: where differences are born, and where they are only handed on.

A tensor is an origin when it differs by more than its dtype's noise and all that its frame's code could see before
(see `flow`) does not, or far less. What comes after an origin and differs has inherited. A difference that leaves no
trace outside of the frame in which it stands (rows permuted here and back there) is no origin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from twinlens.diffing.choices import same_choices
from twinlens.diffing.compare import is_whole, relative_error
from twinlens.diffing.differences import Differences, Origin, effective
from twinlens.diffing.limits import Limits
from twinlens.diffing.points import Comparison, PairedCall, Point, SlotSide
from twinlens.diffing.shapes import conformed
from twinlens.diffing.spikes import matters
from twinlens.tracing.record import Slot, Tensor

_FEWEST_UNMOVED = 0.6
"""Share of tokens that must be sent to the same experts for the others to count as ties."""
_NOTHING_ALIKE = 0.5
"""The relative error of what code was given from which on nothing follows from how far apart its results are."""

Verdict = Literal[
    "agrees",
    "inherited",
    "originates here",
    "children agree, parent differs",
    "inputs already differ",
    "only on padding",
    "unpaired",
    "not comparable",
]


def _is_held_by_an_object(point: Point) -> bool:
    """Whether a tensor is an argument's attribute (`past_key_values.layers[0].keys`): an earlier call that was given
    the same object may have written it, unseen."""
    return point.side == "inputs" and "." in point.place_reference


@dataclass(slots=True)
class _Frame:
    """What the code of one call has seen so far."""

    worst: float = 0.0
    is_tainted: bool = False

    def add(self, error: float, *, is_tainted: bool) -> None:
        self.worst = max(self.worst, error)
        self.is_tainted = self.is_tainted or is_tainted


@dataclass(frozen=True, slots=True)
class _Step:
    """A new tensor whose error is more than the noise floor; `before` is the error of what it is made of."""

    point: Point
    item: PairedCall
    frame: int
    error: float
    before: float


class Judge:
    """Walks over the reference's trace in the order of its calls; afterwards `origins`, `tainted`, `harmless` and
    `input_points` hold what was found."""

    def __init__(
        self, comparison: Comparison, calls: list[PairedCall], limits: Limits, *, is_replay: bool = False
    ) -> None:
        self.is_replay = is_replay
        self.comparison = comparison
        self.limits = limits
        self.calls = calls
        self.reference, self.port = comparison.reference, comparison.port
        self.differences = Differences(comparison, calls, limits)
        self._partners = {index: item.reference for item in calls for index in item.port}
        self.harmless: set[int] = set()
        """Reference tensors that differ without consequence."""
        self.tainted: set[int] = set()
        """Reference tensors that an origin may have gone into, the origins' own among them."""
        self._tainted_ports: set[int] = set()
        self._judged: set[int] = set()
        """Reference tensors that were held against their partners so far."""
        self.origins: list[Origin] = []
        self.input_points: list[Point] = []
        """Inputs of the root that differ."""
        self._steps: list[_Step] = []
        self._judge()
        if not self.origins and not self.input_points:
            self._blame_largest_step()

    def _judge(self) -> None:
        if not self.differences.is_any_beyond:
            return
        while True:
            self._walk()
            spikes = [origin for origin in self.origins if not matters(self.differences, origin)]
            if not spikes or self.is_replay:
                return
            self.harmless.update(t.id for origin in spikes for t in origin.point.reference)

    # the walk

    def _walk(self) -> None:
        self.origins, self.tainted, self.input_points, self._steps = [], set(), [], []
        self._tainted_ports, self._judged = set(), set()
        calls = self.reference.trace.calls
        frames: dict[int, _Frame] = {}
        outside = _Frame()
        for index, side in self.reference.flow.events():
            call = calls[index]
            caller = outside if call.parent is None else frames[call.parent]
            if side == "inputs":
                self._see(index, side, call.inputs, call.parent, caller)
                frames[index] = self._summary(index, side, call.inputs)
                caller.add(frames[index].worst, is_tainted=frames[index].is_tainted)
            else:
                self._see(index, side, call.outputs, index, frames[index])
                shown = self._summary(index, side, call.outputs)
                caller.add(shown.worst, is_tainted=shown.is_tainted)

    def _see(self, index: int, side: SlotSide, slots: tuple[Slot, ...], frame: int | None, seen: _Frame) -> None:
        """Judge what is shown as `index` is entered or left; `frame` made the tensors that are new, and has `seen`."""
        births = self.reference.flow.births
        ids = {slot.tensor.id for slot in slots if slot.tensor is not None}
        new = {identity for identity in ids if births[identity].call == index and births[identity].side == side}
        before = replace(seen)
        if before.is_tainted:
            self.tainted |= new
        points = self.differences.at.get((index, side), ())
        shown = {tensor.id for point, _item in points for tensor in point.reference}
        # What a module without a partner made is seen here for the first time.
        new |= shown - self._judged
        for point, item in points:
            self._judge_point(point, item, frame, new, before)
        self._judged |= shown
        if side == "outputs" and not points:
            self._judge_unpaired(index, new, before)

    def _judge_unpaired(self, index: int, new: set[int], before: _Frame) -> None:
        """What a call without a partner made is judged as it is made: what follows from it may be shown before it."""
        caller = self.reference.trace.calls[index].parent
        for identity in new - self._judged if caller is not None else ():
            known = self.differences.points.get(identity)
            if known is not None and len(known[0].reference) == 1:
                self._judge_point(*known, caller, new, before)
                self._judged.add(identity)

    def _judge_point(self, point: Point, item: PairedCall, frame: int | None, new: set[int], before: _Frame) -> None:
        ours, theirs = {t.id for t in point.reference}, {t.id for t in point.port}
        if ours & self.harmless or theirs & self._tainted_ports:
            return
        error = self.differences.error(point)
        if error <= self.limits.floor(point):
            return
        if frame is None:
            self.input_points.append(point)
        else:
            is_wiring = not ours & new
            if is_wiring and not self._agrees(ours):
                return
            frame = item.reference[self._worst_part(item, point)] if len(point.reference) > 1 else frame
            is_step = (
                self._is_step(point, error, before.worst)
                and not (before.is_tainted and _is_held_by_an_object(point))
                and not self._is_near_tie(point, frame, item, before.worst)
            )
            self._steps.append(_Step(point, item, frame, error, before.worst))
            if not is_step or not self._add_origin(point, item, error, frame, is_wiring=is_wiring):
                self._tainted_ports |= theirs if before.is_tainted else set()
                return
        self._tainted_ports |= theirs
        self.tainted |= ours & new

    def _blame_largest_step(self) -> None:
        """No single step stands out, and yet the two end further apart than noise can bring them."""
        beyond = next(
            (place for place, step in enumerate(self._steps) if step.error > self.limits.ceiling(step.point)), None
        )
        if beyond is None:
            return
        steps = self._steps[: beyond + 1]
        largest = max(steps, key=lambda step: step.error / max(step.before, self.limits.noise(step.point).unit))
        self._add_origin(largest.point, largest.item, largest.error, largest.frame, is_wiring=False)

    def _agrees(self, ids: set[int]) -> bool:
        """Whether tensors that were judged before agree: a later point where they do not is of another partner."""
        return all(self.differences.differs(identity) is False for identity in ids)

    def _summary(self, index: int, side: SlotSide, slots: tuple[Slot, ...]) -> _Frame:
        """The worst error and the taint among what a call is given or returns."""
        found = _Frame()
        if self.is_replay:  # the call was given the reference's values, and its caller went on with them
            return found
        shown: set[int] = set()
        for point, item in self.differences.at.get((index, side), ()):
            ours, theirs = {t.id for t in point.reference}, {t.id for t in point.port}
            shown |= ours
            if not ours & self.harmless:
                error = self.differences.worst_error(point, item)
                if error > self.limits.floor(point) and is_whole(point.reference[0]):
                    error = math.inf  # another index may pick anything
                found.add(error, is_tainted=bool(ours & self.tainted or theirs & self._tainted_ports))
        for slot in slots:
            if slot.tensor is None or slot.tensor.id in shown or slot.tensor.id in self.harmless:
                continue
            known = self.differences.points.get(slot.tensor.id) if slot.tensor.id in self._judged else None
            found.add(self.differences.error(known[0]) if known else 0.0, is_tainted=slot.tensor.id in self.tainted)
        return found

    def _is_step(self, point: Point, error: float, before: float) -> bool:
        if error <= self.limits.floor(point):
            return False
        if math.isinf(error):
            return not math.isinf(before)
        return before < _NOTHING_ALIKE and error > self.limits.noise(point).growth * before

    def _is_near_tie(self, point: Point, frame: int, item: PairedCall, before: float) -> bool:
        """Whether the step is of tokens that were sent to other experts because two of them scored alike."""
        if before == 0 or len(point.reference) + len(point.port) > 2:
            return False
        port_frame = self.port.flow.module_frame(self.port_frame(point, item))
        if port_frame is None:
            return False
        same = same_choices(self.reference, frame, self.port, port_frame)
        if same is None or same.all() or same.mean() < _FEWEST_UNMOVED:
            return False
        both = conformed(
            *(side.values.array(t) for side, t in ((self.reference, point.reference[0]), (self.port, point.port[0])))
        )
        if both is None or both[0].size % len(same):
            return False
        ours, theirs = (values.reshape(len(same), -1)[same] for values in both)
        return not self._is_step(point, relative_error(theirs, ours), before)

    def _add_origin(self, point: Point, item: PairedCall, error: float, frame: int, *, is_wiring: bool) -> bool:
        reference_frame = self.reference.flow.module_frame(frame)
        port_frame = self.port.flow.module_frame(self.port_frame(point, item))
        if reference_frame is None or port_frame is None:
            return False
        if not any(o.reference_frame == reference_frame and o.port_frame == port_frame for o in self.origins):
            flow = self.reference.flow
            seen = flow.left[item.reference[-1]] if point.side == "outputs" else flow.entered[item.reference[0]]
            time = seen if is_wiring else min(flow.births[t.id].time for t in point.reference)
            self.origins.append(Origin(reference_frame, port_frame, point, error, time, item))
        return True

    def port_frame(self, point: Point, item: PairedCall) -> int | None:
        """The frame that made the port's tensor; where the tensor stands for another one of the reference's, the frame
        that handed it on."""
        part = self._worst_part(item, point) if len(point.port) > 1 else 0
        tensor = point.port[part]
        birth = self.port.flow.births[tensor.id]
        call = item.port[part]
        around = self.port.trace.calls[call].parent
        others = self.differences.agreeing_ports.get(tensor.id, set()) - {t.id for t in point.reference}
        if point.side == "outputs":
            return call if others or not self._is_inside(birth.frame, call) else birth.frame
        if others or birth.frame is None or self._is_made_by_another(point.reference[0], birth.frame):
            return around
        return birth.frame

    def _is_made_by_another(self, ours: Tensor, port_frame: int) -> bool:
        """Whether a module with a partner made the port's tensor, and the partner did not make the reference's `ours`:
        whoever handed the one on instead of the other is at fault."""
        if self.port.trace.calls[port_frame].path not in self.comparison.alignment.by_port:
            return False
        return self.reference.flow.births[ours.id].frame not in self._partners.get(port_frame, ())

    def _worst_part(self, item: PairedCall, point: Point) -> int:
        """Which of several joined modules differs most."""
        parts = self.comparison.parts(item.pair, point)
        return max(range(len(parts)), key=lambda place: parts[place].error) if parts else 0

    def _is_inside(self, frame: int | None, outer: int | None) -> bool:
        if frame is None or outer is None:
            return False
        return frame == outer or outer in self.port.flow.ancestors(frame)

    # verdicts of rows

    def verdict(self, item: PairedCall) -> tuple[Verdict, float]:
        """Of one pair of calls: its word, and its outputs' worst relative error (NaN where nothing can be compared)."""
        comparable = [point for point in item.outputs if point.difference.is_comparable]
        if not comparable:
            return "not comparable", math.nan
        error = max(map(effective, comparable))
        if error > max(map(self.limits.floor, comparable)) >= max(map(self.differences.error, comparable)):
            return "only on padding", error
        differs = any(self._is_inherited(point) for point in comparable)
        if not differs:
            return "agrees", error
        if self.input_points and (self.is_root(item) or not self.origins):
            return "inputs already differ", error
        return "inherited", error

    def is_root(self, item: PairedCall) -> bool:
        return self.reference.trace.calls[item.reference[0]].parent is None

    def _is_inherited(self, point: Point) -> bool:
        ids = {t.id for t in point.reference}
        differs = self.differences.error(point) > self.limits.floor(point) and not ids <= self.harmless
        return differs and bool(ids & self.tainted or {t.id for t in point.port} & self._tainted_ports)
