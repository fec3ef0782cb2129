"""How a side makes its attention scores: which projections, normed or not, rotated in which layout by which table, with
key heads repeated or tiled, times what, capped at what. Found by trying each on a sample of the recorded scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twinlens.diffing.causes.attention_view import BLOCKED, Attention
from twinlens.diffing.causes.evidence import View, evenly_spaced
from twinlens.diffing.causes.head_sources import Source, normed_by_hand, sources_of
from twinlens.diffing.causes.rotary_tables import Table, tables_of, usual_tables
from twinlens.diffing.causes.rotation import MIXED, PLAIN, TURNS
from twinlens.diffing.causes.score_ways import Sample, ScoreFit, Trial, Way, ways_of

_MOST_HEADS = 8
_MOST_QUERIES = 24
_MOST_KEYS = 160
_SMALL = (3, 5, 12)
"""Heads, queries and keys that a way is tried on first."""


def fit_scores(view: View, attention: Attention, fit: float) -> ScoreFit | None:
    """The way that explains the recorded scores best; None where none does to within `fit`."""
    sample = _sample(attention)
    if sample is None:
        return None
    length = attention.scores.shape[-1]
    sources = list(sources_of(view, attention, sample.batch, length))
    tables: list[Table | None] = [None, *tables_of(view, length)]
    caps = _caps(view)
    best = _best(sample, sources, ways_of(tables, ("both",), PLAIN), caps, fit)
    if best is None:
        usual = usual_tables(view, {source.heads.shape[2] for source in sources}, length)
        best = _best(sample, sources, ways_of([*tables, *usual], TURNS, (*PLAIN, *MIXED)), caps, fit)
    if best is None:
        best = _best(sample, list(normed_by_hand(view, sources)), ways_of(tables, ("both",), PLAIN), caps, fit)
    return best


def _sample(attention: Attention) -> Sample | None:
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
    return Sample(batch, heads, queries, keys, scores, is_open, head_count)


def _smaller(sample: Sample) -> Sample:
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


def _best(sample: Sample, sources: list[Source], ways: list[Way], caps: list[float], fit: float) -> ScoreFit | None:
    """Ways that fit a part of the sample are tried on the whole."""
    queries = [
        item
        for item in sources
        if item.heads.shape[1] == sample.head_count and item.heads.shape[0] > sample.queries.max()
    ]
    best: ScoreFit | None = None
    trial = Trial(_smaller(sample), ways)
    for key in [item for item in sources if item.heads.shape[0] > sample.keys.max()]:
        for hint in trial.fits(queries, key, caps, 2 * fit):
            whole = Trial(sample, [Way(hint.layout, hint.table, hint.turn)])
            for found in whole.fits([hint.query], key, caps, fit):
                if found.heads == hint.heads and (best is None or found.residual < 0.7 * best.residual):
                    best = found
    return best


def _caps(view: View) -> list[float]:
    """Caps that the module or the configuration names."""
    found = []
    attributes = view.module.attributes if view.module else {}
    for name, value in (*attributes.items(), *view.side.trace.info.config.items()):
        if "cap" in name and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            found.append(float(value))
    return list(dict.fromkeys(found))
