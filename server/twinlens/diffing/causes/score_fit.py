"""How a side makes its attention scores: which projections, normed or not, rotated in which layout by which table, with
key heads repeated or tiled, times what. Found by trying each on a sample of the recorded scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from twinlens.diffing.causes.attention_view import BLOCKED, Attention
from twinlens.diffing.causes.evidence import View, is_floating, residual, short
from twinlens.diffing.causes.rotary import Table, tables_of
from twinlens.diffing.values import Array
from twinlens.tracing.record import Tensor

Layout = Literal["none", "halves", "pairs"]
Heads = Literal["repeated", "tiled"]
Stage = Literal["projected", "normed", "normed per head", "normed over all heads"]

_MOST_HEADS = 8
_MOST_QUERIES = 24
_MOST_KEYS = 160
_MOST_SOURCES = 8
_SMALL = (3, 5, 12)
"""Heads, queries and keys that a way is tried on first."""


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


@dataclass(frozen=True, slots=True)
class ScoreFit:
    query: Source
    key: Source
    layout: Layout
    table: Table | None
    heads: Heads
    scale: float
    cap: float
    """`inf` where scores are not capped."""
    top: float
    """The largest score in absolute value."""
    residual: float


@dataclass(frozen=True, slots=True)
class _Sample:
    """Recorded scores (heads, queries, keys) of one batch entry, capped or not, and where they are."""

    batch: int
    heads: Array
    queries: Array
    """Places of the queries among the keys."""
    keys: Array
    scores: Array
    open: Array
    head_count: int


def fit_scores(view: View, attention: Attention, fit: float) -> ScoreFit | None:
    """The way that explains the recorded scores best; None where none does to within `fit`."""
    sample = _sample(attention)
    if sample is None:
        return None
    length = attention.scores.shape[-1]
    sources = list(_sources(view, attention, sample.batch, length))
    tables: list[Table | None] = [None, *tables_of(view, length)]
    best = _best(view, sample, sources, tables, fit)
    if best is None:
        best = _best(view, sample, list(_normed_by_hand(view, sources)), tables, fit)
    return best


def _sample(attention: Attention) -> _Sample | None:
    batch_count, head_count, _queries, key_count = attention.scores.shape
    open_share = [(attention.scores[batch] > BLOCKED).mean() for batch in range(batch_count)]
    batch = int(np.argmax(open_share))
    heads = _spread(head_count, _MOST_HEADS)
    rows = _spread(len(attention.queries), _MOST_QUERIES)
    keys = _spread(key_count, _MOST_KEYS)
    scores = attention.scores[batch][heads][:, rows][:, :, keys]
    is_open = scores > BLOCKED
    if is_open.sum() < 4 or not np.isfinite(scores[is_open]).all():
        return None
    queries = attention.queries[rows] + key_count - attention.query_count
    return _Sample(batch, heads, queries, keys, scores, is_open, head_count)


def _spread(count: int, wanted: int) -> Array:
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).astype(np.int64))


def _sources(view: View, attention: Attention, batch: int, length: int) -> Iterator[Source]:
    """Tensors made inside the frame before the scores, or given to it, as heads."""
    flow, trace = view.side.flow, view.side.trace
    time = flow.entered[attention.call]
    found: dict[int, tuple[Tensor, str, bool]] = {}
    for slot in trace.calls[view.frame].inputs:
        if slot.tensor is not None:
            found[slot.tensor.id] = (slot.tensor, slot.place, False)
    for child in flow.inside(view.frame):
        if flow.left[child] < time and not trace.calls[child].is_function:
            is_norm = view.side.node_of(child).kind == "norm"
            for slot in trace.calls[child].outputs[:1]:
                if slot.tensor is not None:
                    found[slot.tensor.id] = (slot.tensor, short(trace.calls[child].path), is_norm)
    kept = [item for item in found.values() if is_floating(item[0]) and view.side.values.has(item[0])]
    for tensor, label, is_norm in kept[-_MOST_SOURCES:]:
        flat = _flat(np.asarray(view.array(tensor), np.float64), batch, length)
        if flat is not None:
            stage: Stage = "normed" if is_norm else "projected"
            yield from _as_heads(flat, attention.heads, label, tensor.id, stage)


def _flat(values: Array, batch: int, length: int) -> Array | None:
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


def _normed_by_hand(view: View, sources: list[Source]) -> Iterator[Source]:
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
        length, count, size = source.heads.shape
        for weight in [item for item in weights if len(item) in (size, count * size)]:
            for offset in (0.0, 1.0):
                gain = (offset + weight).reshape(-1, size)
                root = np.sqrt(np.mean(source.heads**2, -1, keepdims=True) + 1e-6)
                yield replace(source, heads=source.heads / root * gain, stage="normed per head")
                root = np.sqrt(np.mean(source.heads**2, (1, 2), keepdims=True) + 1e-6)
                yield replace(source, heads=source.heads / root * gain, stage="normed over all heads")
        del length


def _best(
    view: View, sample: _Sample, sources: list[Source], tables: list[Table | None], fit: float
) -> ScoreFit | None:
    queries = [
        item
        for item in sources
        if item.heads.shape[1] == sample.head_count and item.heads.shape[0] > sample.queries.max()
    ]
    keys = [item for item in sources if item.heads.shape[0] > sample.keys.max()]
    caps = _caps(view)
    best: ScoreFit | None = None
    small = _smaller(sample)
    for query in queries:
        for key in keys:
            if key.heads.shape[2] != query.heads.shape[2] or (query.tensor, query.part) == (key.tensor, key.part):
                continue
            for hint in _tried(small, query, key, tables, caps):
                if hint.residual > 2 * fit:
                    continue
                tables_left = [hint.table]
                for found in _tried(sample, query, key, tables_left, [hint.cap]):
                    is_same_way = (found.layout, found.heads) == (hint.layout, hint.heads)
                    if is_same_way and (best is None or found.residual < 0.7 * best.residual):
                        best = found
    return best if best is not None and best.residual <= fit else None


def _smaller(sample: _Sample) -> _Sample:
    heads, rows, keys = (_spread(count, most) for count, most in zip(sample.scores.shape, _SMALL, strict=True))
    rows = rows if sample.open[heads][:, rows][:, :, keys].sum() >= 8 else np.arange(sample.scores.shape[1])
    return replace(
        sample,
        heads=sample.heads[heads],
        queries=sample.queries[rows],
        keys=sample.keys[keys],
        scores=sample.scores[heads][:, rows][:, :, keys],
        open=sample.open[heads][:, rows][:, :, keys],
    )


def _tried(
    sample: _Sample, query: Source, key: Source, tables: list[Table | None], caps: list[float]
) -> Iterator[ScoreFit]:
    q = query.heads[:, sample.heads]
    groups = sample.head_count // key.heads.shape[1]
    ways: list[tuple[Heads, Array]] = [("repeated", sample.heads // groups)]
    if groups > 1 and key.heads.shape[1] > 1:
        ways.append(("tiled", sample.heads % key.heads.shape[1]))
    for table in tables:
        layouts: tuple[Layout, ...] = ("none",) if table is None else ("halves", "pairs")
        for layout in layouts:
            turned, keys = rotated(q, layout, table, sample.batch), rotated(key.heads, layout, table, sample.batch)
            if turned is None or keys is None:
                continue
            for heads, chosen in ways:
                raw = np.einsum("qhd,khd->hqk", turned[sample.queries], keys[sample.keys][:, chosen])
                for cap in caps:
                    scale, left = _scale(raw, sample, cap)
                    top = float(np.abs(sample.scores[sample.open]).max())
                    yield ScoreFit(query, key, layout, table, heads, scale, cap, top, left)


def _scale(raw: Array, sample: _Sample, cap: float) -> tuple[float, float]:
    """Least-squares factor of the scores before the cap, and what is left after it."""
    x, y = raw[sample.open], sample.scores[sample.open]
    if math.isinf(cap):
        wanted = y
    elif np.abs(y).max() >= cap:
        return 0.0, math.inf
    else:
        wanted = cap * np.arctanh(y / cap)
    size = float(np.sum(x * x))
    scale = float(np.sum(x * wanted)) / size if size else 0.0
    prediction = scale * x if math.isinf(cap) else cap * np.tanh(scale * x / cap)
    return scale, residual(prediction, y) if scale > 0 else math.inf


def rotated(heads: Array, layout: Layout, table: Table | None, batch: int) -> Array | None:
    """(places, heads, size) turned by the table; None where the table is too wide or too short for it."""
    if layout == "none" or table is None:
        return heads
    cosine, sine = table.at(batch)
    pairs = cosine.shape[-1]
    if 2 * pairs > heads.shape[-1] or len(cosine) < len(heads):
        return None
    c, s = cosine[: len(heads), None], sine[: len(heads), None]
    turned = np.array(heads)
    if layout == "halves":
        a, b = heads[..., :pairs], heads[..., pairs : 2 * pairs]
        turned[..., :pairs], turned[..., pairs : 2 * pairs] = a * c - b * s, b * c + a * s
    else:
        a, b = heads[..., : 2 * pairs : 2], heads[..., 1 : 2 * pairs : 2]
        turned[..., : 2 * pairs : 2], turned[..., 1 : 2 * pairs : 2] = a * c - b * s, b * c + a * s
    return turned


def _caps(view: View) -> list[float]:
    """Caps that the module or the configuration names, and none."""
    found = [math.inf]
    attributes = view.module.attributes if view.module else {}
    for name, value in (*attributes.items(), *view.side.trace.info.config.items()):
        if "cap" in name and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            found.append(float(value))
    return list(dict.fromkeys(found))
