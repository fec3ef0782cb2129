"""Heads as a trace shows them before attention: recorded tensors, and parts of fused ones, read as heads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from twinlens.diffing.causes.attention_view import Attention
from twinlens.diffing.causes.evidence import Site, View, is_floating, sampled, short
from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Tensor

Stage = Literal["projected", "normed", "normed per head", "normed over all heads"]
_MOST_SOURCES = 8


@dataclass(frozen=True, slots=True)
class Source:
    """Query or key heads before rotation: `heads` (places, heads, size), one batch entry."""

    heads: Array
    label: str
    tensor: int
    """Id of the tensor that they are read from."""
    stage: Stage
    part: str
    """How they lie in it: `whole`, `block 0`, `by head`, `by group`, `by dimension`."""


def norms(side: Side, call: int) -> bool:
    """Whether a call is of a norm: by its kind, or as a module without one that keeps the shape and owns one vector of
    the width."""
    node = side.node_of(call)
    if node.kind:
        return node.kind == "norm"
    sizes = {item.tensor.shape for item in node.parameters if not item.is_buffer}
    return not side.flow.children[call] and node.shape_in == node.shape_out and sizes == {node.shape_in[-1:]}


def made_by_partners(site: Site, reference: int, port: int) -> bool:
    """Whether two tensors, by their ids, come from modules that stand for each other; so does what no module made."""
    makers = []
    for view, tensor in ((site.reference, reference), (site.port, port)):
        birth = view.side.flow.births[tensor]
        if birth.side != "outputs":
            return True
        makers.append(view.side.trace.calls[birth.call].path)
    pair = site.comparison.alignment.by_port.get(makers[1])
    return pair is None or makers[0] not in site.comparison.alignment.by_reference or makers[0] in pair.reference


def is_given_projections(view: View, normed: int) -> bool:
    """Whether the norm that made the tensor of that id was given numbers that a module had returned, moved at most."""
    birth = view.side.flow.births[normed]
    trace, flow = view.side.trace, view.side.flow
    given = next((slot.tensor for slot in trace.calls[birth.call].inputs if slot.tensor is not None), None)
    if given is None or not view.side.values.has(given):
        return False
    numbers = sampled(view.array(given))
    returned = [
        slot.tensor
        for child in flow.inside(view.frame)
        if flow.left[child] <= flow.entered[birth.call] and not trace.calls[child].is_function
        for slot in trace.calls[child].outputs
        if slot.tensor is not None and is_floating(slot.tensor) and view.side.values.has(slot.tensor)
    ]
    return any(bool(np.isin(numbers, view.array(tensor)).all()) for tensor in returned)


def sources_of(view: View, attention: Attention, batch: int, length: int) -> Iterator[Source]:
    """Tensors made inside the frame before the scores, or given to it, as heads."""
    for flat, label, tensor, stage in flats_of(view, attention, batch, length):
        yield from _as_heads(flat, attention.heads, label, tensor, stage)


def flats_of(view: View, attention: Attention, batch: int, length: int) -> Iterator[tuple[Array, str, int, Stage]]:
    """(places, width) of one batch entry, with label, id and stage, of each of those tensors."""
    flow, trace = view.side.flow, view.side.trace
    time = flow.entered[attention.call]
    found: dict[int, tuple[Tensor, str, bool]] = {}
    for slot in trace.calls[view.frame].inputs:
        if slot.tensor is not None:
            found[slot.tensor.id] = (slot.tensor, slot.place, False)
    for child in flow.inside(view.frame):
        if flow.left[child] < time and not trace.calls[child].is_function:
            is_norm = norms(view.side, child)
            for slot in trace.calls[child].outputs[:1]:
                if slot.tensor is not None:
                    found[slot.tensor.id] = (slot.tensor, short(trace.calls[child].path), is_norm)
    kept = [item for item in found.values() if is_floating(item[0]) and view.side.values.has(item[0])]
    for tensor, label, is_norm in kept[-_MOST_SOURCES:]:
        flat = flat_of(np.asarray(view.array(tensor), np.float64), batch, length)
        if flat is not None:
            yield flat, label, tensor.id, "normed" if is_norm else "projected"


def flat_of(values: Array, batch: int, length: int) -> Array | None:
    """(places, width) of one batch entry, heads after one another; None where no dimension is the places."""
    shape = values.shape
    if values.ndim == 2:
        rows = values.reshape(-1, length, shape[-1]) if shape[0] % length == 0 else None
        return None if rows is None else rows[min(batch, len(rows) - 1)]
    if values.ndim == 3:
        if shape[1] == length:
            return values[min(batch, shape[0] - 1)]
        return values[:, min(batch, shape[1] - 1)] if shape[0] == length else None
    if values.ndim == 4:
        entry = values[min(batch, shape[0] - 1)]
        if shape[1] == length:
            return entry.reshape(length, -1)
        return entry.transpose(1, 0, 2).reshape(length, -1) if shape[2] == length else None
    return None


def _as_heads(flat: Array, heads: int, label: str, tensor: int, stage: Stage) -> Iterator[Source]:
    """Every way to read `flat` as heads: whole, or a part of a fused projection."""
    length, width = flat.shape

    def source(values: Array, part: str) -> Source:
        return Source(values, label, tensor, stage, part)

    for count in [count for count in range(1, heads + 1) if heads % count == 0 and width % count == 0]:
        yield source(flat.reshape(length, count, -1), "whole")
    for kv_heads in [count for count in range(1, heads + 1) if heads % count == 0]:
        size, rest = divmod(width, heads + 2 * kv_heads)
        if rest or size < 2:
            continue
        groups = heads // kv_heads
        block = flat.reshape(length, heads + 2 * kv_heads, size)
        yield source(block[:, :heads], "block 0")
        yield source(block[:, heads : heads + kv_heads], "block 1")
        grouped = flat.reshape(length, kv_heads, groups + 2, size)
        yield source(grouped[:, :, :groups].reshape(length, heads, size), "by group 0")
        yield source(grouped[:, :, groups], "by group 1")
        if kv_heads == heads:
            by_dimension = flat.reshape(length, heads, size, 3)
            yield source(by_dimension[..., 0], "by dimension 0")
            yield source(by_dimension[..., 1], "by dimension 1")
    for kv_heads in [count for count in range(1, heads + 1) if heads % count == 0 and width % (2 * count) == 0]:
        yield source(flat.reshape(length, 2, kv_heads, -1)[:, 0], "first half")
        if kv_heads > 1:
            yield source(flat.reshape(length, kv_heads, 2, -1)[:, :, 0], "by head 0")


def normed_by_hand(view: View, sources: list[Source]) -> Iterator[Source]:
    """Projections normed by weights that the frame owns, where no call of a norm was recorded."""
    prefix = f"{view.call.path}."
    weights = [
        np.asarray(view.side.values.array(item.tensor), np.float64)
        for node in view.side.nodes.values()
        if node.path.startswith(prefix) and node.kind == "norm"
        for item in node.parameters
        if len(item.tensor.shape) == 1 and view.side.values.has(item.tensor)
    ]
    for source in [item for item in sources if item.stage == "projected"]:
        _length, count, size = source.heads.shape
        for weight in [item for item in weights if len(item) in (size, count * size)]:
            for offset in (0.0, 1.0):
                gain = (offset + weight).reshape(-1, size)
                root = np.sqrt(np.mean(source.heads**2, -1, keepdims=True) + 1e-6)
                yield replace(source, heads=source.heads / root * gain, stage="normed per head")
                root = np.sqrt(np.mean(source.heads**2, (1, 2), keepdims=True) + 1e-6)
                yield replace(source, heads=source.heads / root * gain, stage="normed over all heads")
