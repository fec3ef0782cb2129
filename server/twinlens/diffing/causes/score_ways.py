"""All ways to make the scores of two sources, tried at once on a sample of recorded scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from twinlens.diffing.causes.cap_fit import ALIKE, scale_and_cap, scales
from twinlens.diffing.causes.head_sources import Source
from twinlens.diffing.causes.rotary_tables import Table
from twinlens.diffing.causes.rotation import Layout, Turn, rotated
from twinlens.diffing.values import Array

Heads = Literal["repeated", "tiled"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Recorded scores (heads, queries, keys) of one batch entry, capped or not, and where they are."""

    batch: int
    heads: Array
    queries: Array
    """Places of the queries among the keys."""
    keys: Array
    scores: Array
    open: Array
    head_count: int


class Way(NamedTuple):
    """How queries and keys are turned before they are multiplied."""

    layout: Layout
    table: Table | None
    turn: Turn


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


def ways_of(tables: Iterable[Table | None], turns: Iterable[Turn], layouts: Iterable[Layout]) -> list[Way]:
    found: list[Way] = []
    for table in tables:
        if table is None:
            found.append(Way("none", None, "both"))
        else:
            found += [Way(layout, table, turn) for layout, turn in product(layouts, turns)]
    return found


class Trial:
    """One sample and the ways to be tried on it. What was made of a query source is kept for the next key source."""

    def __init__(self, sample: Sample, ways: list[Way]) -> None:
        self._sample = sample
        self._ways = ways
        self._known = sample.scores[sample.open]
        self._top = float(np.abs(self._known).max())
        numbers: dict[tuple[Layout, int, bool], int] = {}
        self._turnings: list[tuple[Layout, Table | None]] = []

        def number(layout: Layout, table: Table | None, *, is_backwards: bool = False) -> int:
            key = (layout, id(table), is_backwards)
            if key not in numbers:
                numbers[key] = len(self._turnings)
                self._turnings.append((layout, table.reversed() if table is not None and is_backwards else table))
            return numbers[key]

        pairs = []
        for layout, table, turn in ways:
            turned = number(layout, table, is_backwards=turn == "backwards")
            left = number("none", None)
            pairs.append((left if turn == "key alone" else turned, left if turn == "query alone" else turned))
        self._of_query, self._of_key = np.array(pairs, np.int64).reshape(-1, 2).T
        self._queries: dict[int, tuple[Array, Array]] = {}

    def fits(self, queries: list[Source], key: Source, caps: list[float], fit: float) -> Iterator[ScoreFit]:
        """What explains the sample to within `fit`, with keys from `key`: not capped, capped at one of `caps`, or else
        at one that is solved for."""
        for heads, chosen in _head_orders(self._sample, key):
            keys, has_keys = self._turned(key.heads[self._sample.keys][:, chosen], self._sample.keys)
            for query in queries:
                if query.heads.shape[2] != key.heads.shape[2] or (query.tensor, query.part) == (key.tensor, key.part):
                    continue
                if id(query) not in self._queries:
                    asked = query.heads[self._sample.queries][:, self._sample.heads]
                    self._queries[id(query)] = self._turned(asked, self._sample.queries)
                turned, has_queries = self._queries[id(query)]
                at = np.flatnonzero(has_queries[self._of_query] & has_keys[self._of_key])
                raw = np.matmul(
                    turned[self._of_query[at]].transpose(0, 2, 1, 3), keys[self._of_key[at]].transpose(0, 2, 3, 1)
                )
                for place, scale, cap, left in self._explained(raw[:, self._sample.open], caps, fit):
                    layout, table, turn = self._ways[at[place]]
                    yield ScoreFit(query, key, layout, table, heads, scale, cap, self._top, left, turn)

    def _turned(self, heads: Array, places: Array) -> tuple[Array, Array]:
        """(turnings, places, heads, size), and (turnings,): whether the table fits."""
        made = [rotated(heads, layout, table, self._sample.batch, places) for layout, table in self._turnings]
        return np.stack([heads if item is None else item for item in made]), np.array([x is not None for x in made])

    def _explained(self, raw: Array, caps: list[float], fit: float) -> Iterator[tuple[int, float, float, float]]:
        """(place, scale, cap, residual) of each row of `raw` (ways, scores) that explains the sample."""
        factors, plain = scales(raw, self._known, math.inf)
        capped = [(cap, *scales(raw, self._known, cap)) for cap in caps]
        for place in range(len(raw)):
            known = [(math.inf, factors, plain), *capped]
            fitting = [(float(f[place]), cap, float(left[place])) for cap, f, left in known if left[place] <= fit]
            if not fitting and plain[place] <= ALIKE:
                solved = scale_and_cap(raw[place], self._known)
                fitting = [solved] if solved[2] <= fit else []
            for scale, cap, left in fitting:
                yield place, scale, cap, left


def _head_orders(sample: Sample, key: Source) -> Iterator[tuple[Heads, Array]]:
    """Which key head each of the sampled query heads is multiplied with."""
    count = key.heads.shape[1]
    groups = sample.head_count // count
    yield "repeated", sample.heads // groups
    if groups > 1 and count > 1:
        yield "tiled", sample.heads % count
