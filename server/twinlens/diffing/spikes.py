"""Differences without consequence: what is off by a permutation, say, that the next line takes back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from twinlens.diffing.differences import Differences, Origin
from twinlens.tracing.record import Tensor


def matters(differences: Differences, origin: Origin) -> bool:
    """Whether a difference is seen anywhere after it."""
    flow = differences.reference.flow
    tensor = origin.point.reference[0]
    birth = flow.births[tensor.id]
    calls = differences.reference.trace.calls
    is_handed_on = origin.point.side == "inputs" and birth.side == "outputs"
    if is_handed_on:
        frame = calls[origin.seen_by.reference[0]].parent
    else:
        frame = birth.frame if birth.side == "inputs" else calls[birth.call].parent
    if frame is None:
        return True
    outputs = [slot.tensor for slot in flow.call(frame).outputs if slot.tensor is not None]
    known = [differs for t in outputs if (differs := _shown_to_differ(differences, frame, t)) is not None]
    if known and not any(known):
        return False
    if _is_projection(differences, origin):
        parts = len(origin.seen_by.pair.reference) + len(origin.seen_by.pair.port) - 1
        following = islice(_made_after(differences, frame, origin.time), parts)
        known = [differences.differs(tensor.id) for tensor in following]
        return not known or any(known)
    return True


def _shown_to_differ(differences: Differences, frame: int, tensor: Tensor) -> bool | None:
    """Of an output of `frame`, as the frame returns it."""
    shown = [
        differences.is_beyond(point)
        for point, _item in differences.at.get((frame, "outputs"), ())
        if tensor.id in {t.id for t in point.reference}
    ]
    return any(shown) if shown else differences.differs(tensor.id)


def _is_projection(differences: Differences, origin: Origin) -> bool:
    pair = origin.seen_by.pair
    nodes = [differences.reference.nodes[path] for path in pair.reference] + [
        differences.port.nodes[path] for path in pair.port
    ]
    return origin.point.side == "outputs" and any(node.kind == "linear" for node in nodes)


def _made_after(differences: Differences, frame: int, time: int) -> Iterator[Tensor]:
    """Tensors that the frame's own code made then, as far as they can be compared."""
    flow, points = differences.reference.flow, differences.points
    for child in flow.children[frame]:
        if flow.entered[child] < time:
            continue
        for slot in flow.call(child).inputs:
            if slot.tensor is not None and flow.births[slot.tensor.id].call == child and slot.tensor.id in points:
                yield slot.tensor
