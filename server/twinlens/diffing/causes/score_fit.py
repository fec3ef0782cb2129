"""How a side makes its attention scores: which projections, normed or not, rotated in which layout by which table, with
key heads repeated or tiled, times what. Found by trying each on a sample of the recorded scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

import numpy as np

from twinlens.diffing.causes.attention_view import BLOCKED, Attention
from twinlens.diffing.causes.evidence import View, evenly_spaced, residual
from twinlens.diffing.causes.head_sources import Source, normed_by_hand, sources_of
from twinlens.diffing.causes.rotary_tables import Table, tables_of, usual_tables
from twinlens.diffing.values import Array

Layout = Literal["none", "halves", "pairs", "halves by pairs", "pairs by halves"]
"""How dimensions are paired; the last two pair them one way and lay out the table's angles the other way."""
Heads = Literal["repeated", "tiled"]
Turn = Literal["both", "query alone", "key alone", "backwards"]
"""What the table turns: both queries and keys, one of them, or both the other way round."""

_PLAIN: tuple[Layout, ...] = ("halves", "pairs")
_MIXED: tuple[Layout, ...] = ("halves by pairs", "pairs by halves")
_TURNS: tuple[Turn, ...] = ("both", "query alone", "key alone", "backwards")
_MOST_HEADS = 8
_MOST_QUERIES = 24
_MOST_KEYS = 160
_SMALL = (3, 5, 12)
"""Heads, queries and keys that a way is tried on first."""


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
    turn: Turn = "both"


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


@dataclass(slots=True)
class _Trial:
    """A sample with what is asked of it for every way: each source is turned once, however many it is tried with."""

    sample: _Sample
    known: Array = field(init=False)
    """The open scores."""
    top: float = field(init=False)
    _turned: dict[tuple[int, int, str, int, bool], Array | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = self.sample.scores[self.sample.open]
        self.top = float(np.abs(self.known).max())

    def queries(self, source: Source, layout: Layout, table: Table | None, *, is_backwards: bool) -> Array | None:
        """(queries, heads, size); None where the table does not fit."""
        return self._turn(0, source, self.sample.queries, layout, table, is_backwards)

    def keys(self, source: Source, layout: Layout, table: Table | None, *, is_backwards: bool) -> Array | None:
        """(keys, key heads, size); None where the table does not fit."""
        return self._turn(1, source, self.sample.keys, layout, table, is_backwards)

    def _turn(
        self, role: int, source: Source, places: Array, layout: Layout, table: Table | None, is_backwards: bool
    ) -> Array | None:
        key = (role, id(source), layout, id(table), is_backwards)
        if key not in self._turned:
            heads = source.heads[places] if role else source.heads[places][:, self.sample.heads]
            used = table.reversed() if table is not None and is_backwards else table
            self._turned[key] = rotated(heads, layout, used, self.sample.batch, places)
        return self._turned[key]


def fit_scores(view: View, attention: Attention, fit: float) -> ScoreFit | None:
    """The way that explains the recorded scores best; None where none does to within `fit`."""
    sample = _sample(attention)
    if sample is None:
        return None
    length = attention.scores.shape[-1]
    sources = list(sources_of(view, attention, sample.batch, length))
    tables: list[Table | None] = [None, *tables_of(view, length)]
    best = _best(view, sample, sources, tables, fit)
    if best is None:
        tables += usual_tables(view, {source.heads.shape[2] for source in sources}, length)
        best = _best(view, sample, sources, tables, fit, _TURNS, (*_PLAIN, *_MIXED))
    if best is None:
        best = _best(view, sample, list(normed_by_hand(view, sources)), tables, fit)
    return best


def _sample(attention: Attention) -> _Sample | None:
    batch_count, head_count, _queries, key_count = attention.scores.shape
    open_share = [(attention.scores[batch] > BLOCKED).mean() for batch in range(batch_count)]
    batch = int(np.argmax(open_share))
    heads = evenly_spaced(head_count, _MOST_HEADS)
    rows = evenly_spaced(len(attention.queries), _MOST_QUERIES)
    keys = evenly_spaced(key_count, _MOST_KEYS)
    scores = attention.scores[batch][heads][:, rows][:, :, keys]
    is_open = scores > BLOCKED
    if is_open.sum() < 4 or not np.isfinite(scores[is_open]).all():
        return None
    queries = attention.queries[rows] + key_count - attention.query_count
    return _Sample(batch, heads, queries, keys, scores, is_open, head_count)


def _best(
    view: View,
    sample: _Sample,
    sources: list[Source],
    tables: list[Table | None],
    fit: float,
    turns: tuple[Turn, ...] = ("both",),
    layouts: tuple[Layout, ...] = _PLAIN,
) -> ScoreFit | None:
    queries = [
        item
        for item in sources
        if item.heads.shape[1] == sample.head_count and item.heads.shape[0] > sample.queries.max()
    ]
    keys = [item for item in sources if item.heads.shape[0] > sample.keys.max()]
    caps = _caps(view)
    best: ScoreFit | None = None
    small, whole = _Trial(_smaller(sample)), _Trial(sample)
    for query in queries:
        for key in keys:
            if key.heads.shape[2] != query.heads.shape[2] or (query.tensor, query.part) == (key.tensor, key.part):
                continue
            for hint in _tried(small, query, key, tables, caps, turns, layouts):
                if hint.residual > 2 * fit:
                    continue
                tables_left = [hint.table]
                for found in _tried(whole, query, key, tables_left, [hint.cap], (hint.turn,), (hint.layout,)):
                    is_same_way = (found.layout, found.heads) == (hint.layout, hint.heads)
                    if is_same_way and (best is None or found.residual < 0.7 * best.residual):
                        best = found
    return best if best is not None and best.residual <= fit else None


def _smaller(sample: _Sample) -> _Sample:
    heads, rows, keys = (evenly_spaced(count, most) for count, most in zip(sample.scores.shape, _SMALL, strict=True))
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
    trial: _Trial,
    query: Source,
    key: Source,
    tables: list[Table | None],
    caps: list[float],
    turns: tuple[Turn, ...],
    layouts: tuple[Layout, ...],
) -> Iterator[ScoreFit]:
    sample = trial.sample
    groups = sample.head_count // key.heads.shape[1]
    ways: list[tuple[Heads, Array]] = [("repeated", sample.heads // groups)]
    if groups > 1 and key.heads.shape[1] > 1:
        ways.append(("tiled", sample.heads % key.heads.shape[1]))
    for table in tables:
        ways_to_turn: tuple[Turn, ...] = ("both",) if table is None else turns
        for layout, turn in product(("none",) if table is None else layouts, ways_to_turn):
            of_query: Layout = "none" if turn == "key alone" else layout
            of_key: Layout = "none" if turn == "query alone" else layout
            queries = trial.queries(query, of_query, table, is_backwards=turn == "backwards")
            keys = trial.keys(key, of_key, table, is_backwards=turn == "backwards")
            if queries is None or keys is None:
                continue
            for heads, chosen in ways:
                raw = np.einsum("qhd,khd->hqk", queries, keys[:, chosen])
                for cap in caps:
                    scale, left = _scale(raw[sample.open], trial, cap)
                    yield ScoreFit(query, key, layout, table, heads, scale, cap, trial.top, left, turn)


def _scale(x: Array, trial: _Trial, cap: float) -> tuple[float, float]:
    """Least-squares factor of the scores before the cap, and what is left after it."""
    y = trial.known
    if math.isinf(cap):
        wanted = y
    elif trial.top >= cap:
        return 0.0, math.inf
    else:
        wanted = cap * np.arctanh(y / cap)
    size = float(np.sum(x * x))
    scale = float(np.sum(x * wanted)) / size if size else 0.0
    if not scale > 0:
        return scale, math.inf
    return scale, residual(scale * x if math.isinf(cap) else cap * np.tanh(scale * x / cap), y)


def rotated(heads: Array, layout: Layout, table: Table | None, batch: int, places: Array | None = None) -> Array | None:
    """(places, heads, size) turned by the table, at the positions `places` or from 0 on; None where the table is too
    wide or too short for it."""
    if layout == "none" or table is None:
        return heads
    cosine, sine = table.at(batch)
    pairs = cosine.shape[-1]
    at = np.arange(len(heads)) if places is None else places
    if 2 * pairs > heads.shape[-1] or len(cosine) <= at.max():
        return None
    c, s = cosine[at][:, None], sine[at][:, None]
    columns = np.arange(2 * pairs)
    is_halves = layout.startswith("halves")
    first = columns[:pairs] if is_halves else columns[::2]
    second = columns[pairs:] if is_halves else columns[1::2]
    # By column of a head: the pair whose angle it is turned by.
    angle = columns % pairs if layout in ("halves", "pairs by halves") else columns // 2
    turned = np.array(heads)
    a, b = heads[..., first], heads[..., second]
    turned[..., first] = a * c[..., angle[first]] - b * s[..., angle[first]]
    turned[..., second] = b * c[..., angle[second]] + a * s[..., angle[second]]
    return turned


def _caps(view: View) -> list[float]:
    """Caps that the module or the configuration names, and none."""
    found = [math.inf]
    attributes = view.module.attributes if view.module else {}
    for name, value in (*attributes.items(), *view.side.trace.info.config.items()):
        if "cap" in name and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            found.append(float(value))
    return list(dict.fromkeys(found))
