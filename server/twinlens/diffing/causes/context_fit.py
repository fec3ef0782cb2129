"""What attention makes of its probabilities: from which values, matched how, rotated or not, heads joined how."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twinlens.diffing.causes.attention_view import Attention
from twinlens.diffing.causes.evidence import Finding, Site, View, evenly_spaced, is_floating, residual
from twinlens.diffing.causes.head_sources import flat_of, flats_of, made_by_partners
from twinlens.diffing.causes.rotary_tables import Table, tables_of
from twinlens.diffing.causes.rotation import Layout, rotated
from twinlens.diffing.causes.score_ways import Heads
from twinlens.diffing.values import Array
from twinlens.tracing.record import Tensor

Join = Literal["heads behind tokens", "heads before tokens", "heads behind sizes", "sizes before tokens"]
_SAID: dict[Join, str] = {
    "heads behind tokens": "moves the heads behind the tokens before it joins them",
    "heads before tokens": "joins the heads as they lie, before the tokens (no transpose back)",
    "heads behind sizes": "joins the heads behind their dimensions (size × heads, not heads × size)",
    "sizes before tokens": "joins the heads with the tokens behind their dimensions",
}
_MOST_HEADS = 8
_MOST_QUERIES = 48


@dataclass(frozen=True, slots=True)
class ContextFit:
    label: str
    tensor: int
    """Id of the tensor that values are read from."""
    part: str
    heads: Heads
    layout: Layout
    join: Join
    residual: float


@dataclass(frozen=True, slots=True)
class _Sample:
    """Probabilities (heads, queries, keys) of one batch entry, which those are, and the context as each way of joining
    has it: (heads, queries, size)."""

    probabilities: Array
    heads: Array
    queries: Array
    contexts: dict[Join, Array]
    head_count: int
    size: int


def context_otherwise(site: Site, ours: Attention, theirs: Attention) -> Iterator[Finding]:
    bound = 3 * site.fit
    first = fit_context(site.reference, ours, bound)
    second = fit_context(site.port, theirs, bound) if first is not None else None
    if first is None or second is None:
        return
    left = max(first.residual, second.residual)
    name = site.port.node.class_name
    if first.join != second.join:
        yield Finding(
            "head-merge",
            f"the reference {_SAID[first.join]}, the port {_SAID[second.join]}",
            left,
            f"In {name}, transpose the context so that each token's heads stand side by side before the reshape.",
        )
    elif (first.layout == "none") != (second.layout == "none"):
        who = ("port", "reference") if first.layout == "none" else ("reference", "port")
        yield Finding(
            "rope-applied",
            f"the {who[0]} rotates the values too, the {who[1]} only queries and keys",
            left,
            f"{'Leave' if who[0] == 'port' else 'Rotate'} {'v as it is' if who[0] == 'port' else 'v'} in {name}.",
        )
    elif first.heads != second.heads:
        said = {"repeated": "value head h // groups", "tiled": "value head h % value heads"}
        yield Finding(
            "gqa-layout",
            f"the reference gives query head h the {said[first.heads]}, the port the {said[second.heads]}",
            left,
            f"Use {'repeat_interleave' if first.heads == 'repeated' else 'repeat'} for v in {name}.",
        )
    elif not made_by_partners(site, first.tensor, second.tensor):
        yield Finding(
            "fused-order",
            f"the reference takes values from {first.label}, the port from {second.label}, which is the partner of "
            "another module",
            left,
            f"Take values from the partner of {first.label} in {name}, or exchange the weights in the conversion.",
        )


def fit_context(view: View, attention: Attention, fit: float) -> ContextFit | None:
    """The way that explains the recorded context best; None where none does to within `fit`."""
    sample = _sample(view, attention)
    if sample is None:
        return None
    length = attention.scores.shape[-1]
    values = [
        (label, tensor, part, heads)
        for flat, label, tensor, _stage in flats_of(view, attention, 0, length)
        for part, heads in _value_heads(flat, attention.heads, sample.size)
    ]
    best: ContextFit | None = None
    for table in (None, *tables_of(view, length)):
        for label, tensor, part, heads in values:
            for found in _tried(sample, heads, table):
                if best is None or found.residual < best.residual:
                    best = ContextFit(label, tensor, part, found.heads, found.layout, found.join, found.residual)
        if best is not None and best.residual <= fit:
            return best
    return None


def _sample(view: View, attention: Attention) -> _Sample | None:
    tensor = _context(view, attention)
    if tensor is None:
        return None
    flat = flat_of(np.asarray(view.array(tensor), np.float64), 0, attention.query_count)
    if flat is None or flat.shape[1] % attention.heads:
        return None
    count, length = attention.heads, attention.query_count
    size = flat.shape[1] // count
    contexts: dict[Join, Array] = {
        "heads behind tokens": flat.reshape(length, count, size).transpose(1, 0, 2),
        "heads before tokens": flat.reshape(count, length, size),
        "heads behind sizes": flat.reshape(length, size, count).transpose(2, 0, 1),
        "sizes before tokens": flat.reshape(count, size, length).transpose(0, 2, 1),
    }
    heads, rows = evenly_spaced(count, _MOST_HEADS), evenly_spaced(len(attention.queries), _MOST_QUERIES)
    queries = attention.queries[rows]
    chosen = {join: values[heads][:, queries] for join, values in contexts.items()}
    return _Sample(attention.probabilities[0][heads][:, rows], heads, queries, chosen, count, size)


def _context(view: View, attention: Attention) -> Tensor | None:
    """The first tensor after the attention that the frame's own code made and that is as large as its heads joined."""
    flow, calls = view.side.flow, view.side.trace.calls
    heads = attention.query_count * attention.heads
    found: list[tuple[int, Tensor]] = []
    inside = [slot for child in flow.children[view.frame] for slot in calls[child].inputs]
    for slot in (*inside, *calls[view.frame].outputs):
        tensor = slot.tensor
        if tensor is None or not is_floating(tensor) or not view.side.values.has(tensor):
            continue
        birth = flow.births[tensor.id]
        if birth.frame != view.frame or birth.time <= flow.left[attention.call]:
            continue
        if math.prod(tensor.shape) % heads == 0:
            found.append((birth.time, tensor))
    return min(found, key=lambda item: item[0])[1] if found else None


def _value_heads(flat: Array, heads: int, size: int) -> Iterator[tuple[str, Array]]:
    """(part, (places, value heads, size)): every way to read values of a head of `size` from a tensor."""
    length, width = flat.shape
    for count in [count for count in range(1, heads + 1) if heads % count == 0]:
        groups = heads // count
        if width == count * size:
            yield "whole", flat.reshape(length, count, size)
        if width == (heads + 2 * count) * size:
            yield "last block", flat.reshape(length, heads + 2 * count, size)[:, heads + count :]
            yield "last of each group", flat.reshape(length, count, groups + 2, size)[:, :, -1]
            if count == heads:
                yield "last of each dimension", flat.reshape(length, heads, size, 3)[..., 2]
        if width == 2 * count * size:
            yield "second half", flat.reshape(length, 2, count, size)[:, 1]
            yield "second of each head", flat.reshape(length, count, 2, size)[:, :, 1]


@dataclass(frozen=True, slots=True)
class _Way:
    heads: Heads
    layout: Layout
    join: Join
    residual: float


def _tried(sample: _Sample, values: Array, table: Table | None) -> Iterator[_Way]:
    layouts: tuple[Layout, ...] = ("none",) if table is None else ("halves", "pairs")
    groups = sample.head_count // values.shape[1]
    ways: list[tuple[Heads, Array]] = [("repeated", sample.heads // groups)]
    if groups > 1 and values.shape[1] > 1:
        ways.append(("tiled", sample.heads % values.shape[1]))
    for layout in layouts:
        turned = rotated(values, layout, table, 0)
        if turned is None:
            continue
        for heads, chosen in ways:
            made = np.einsum("hqk,khd->hqd", sample.probabilities, turned[:, chosen])
            for join, context in sample.contexts.items():
                yield _Way(heads, layout, join, residual(made, context))
