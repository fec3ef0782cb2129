"""Attention: scores made otherwise, masks, the axis of the softmax, heads matched otherwise, scales and caps."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.attention_view import BLOCKED, Attention, attention_call, attention_of
from twinlens.diffing.causes.caps import fitted_cap
from twinlens.diffing.causes.context_fit import context_otherwise
from twinlens.diffing.causes.evidence import Finding, Site, nice, residual, scale_of
from twinlens.diffing.causes.masks import compare_blocked, find_mask
from twinlens.diffing.causes.query_rows import bound_of
from twinlens.diffing.causes.score_bias import bias_otherwise
from twinlens.diffing.causes.score_causes import made_otherwise, scale_finding
from twinlens.diffing.causes.score_fit import fit_scores
from twinlens.diffing.causes.softmax_axis import find_axis
from twinlens.diffing.values import Array

_MOST_SCORES = 200_000


def find(site: Site) -> Iterator[Finding]:
    mask = _mask_tensors(site)
    if mask is not None:
        yield mask
        return
    pair = _attentions(site)
    if pair is None:
        return
    ours, theirs = pair
    axis = find_axis(site, ours.call, theirs.call)
    if axis is not None:
        yield axis
        return
    masks = list(find_mask(site, ours, theirs))
    yield from masks
    if ours.scores.shape != theirs.scores.shape:
        return
    found = [] if _scores_agree(site, ours, theirs) else list(_fitted_otherwise(site, pair))
    yield from found
    if found or masks:
        return
    direct = list(_scores_differ(site, ours, theirs)) if site.is_clean else []
    direct = direct or list(context_otherwise(site, ours, theirs))
    yield from direct
    if not direct and site.is_clean:
        yield from _values_matched_otherwise(site, ours, theirs)


def _mask_tensors(site: Site) -> Finding | None:
    """Two masks (batch, 1, queries, keys), of truth values or of numbers to add."""
    blocked: list[Array] = []
    for view in site.views:
        shape = view.tensor.shape
        if len(shape) not in (2, 3, 4) or shape[-1] < 2 or not view.side.values.has(view.tensor):
            return None
        values = view.target()
        if values.dtype != bool and ("int" in view.tensor.dtype or not ((values == 0) | (values < BLOCKED)).all()):
            return None
        mask = np.asarray(~values if values.dtype == bool else values < BLOCKED)
        blocked.append(np.asarray(mask.reshape(-1, *shape[-2:]) if len(shape) < 4 else mask.all(1)))
    if blocked[0].shape != blocked[1].shape or blocked[0].shape[-2] < 2:
        return None
    queries, keys = blocked[0].shape[-2:]
    return compare_blocked(site, blocked[0], blocked[1], np.arange(queries) + keys - queries)


def _scores_agree(site: Site, ours: Attention, theirs: Attention) -> bool:
    both = ~ours.blocked & ~theirs.blocked
    return residual(theirs.scores[both], ours.scores[both]) <= 4 * site.noise.unit


def _fitted_otherwise(site: Site, pair: tuple[Attention, Attention]) -> Iterator[Finding]:
    ours = fit_scores(site.reference, pair[0], bound_of(site))
    theirs = fit_scores(site.port, pair[1], bound_of(site)) if ours is not None else None
    if ours is not None and theirs is not None:
        yield from made_otherwise(site, ours, theirs)


def _attentions(site: Site) -> tuple[Attention, Attention] | None:
    calls = [attention_call(view) for view in site.views]
    if calls[0] is None or calls[1] is None:
        return None
    ours = attention_of(site.reference.side, calls[0])
    theirs = attention_of(site.port.side, calls[1])
    if ours is None or theirs is None:
        return None
    if ours.scores.shape[:2] != theirs.scores.shape[:2]:
        heads = max(ours.heads, theirs.heads) if min(ours.scores.shape[0], theirs.scores.shape[0]) == 1 else None
        heads = min(ours.heads, theirs.heads) if heads else None
        ours = attention_of(site.reference.side, calls[0], heads) or ours
        theirs = attention_of(site.port.side, calls[1], heads) or theirs
    return ours, theirs


# what the scores themselves say


def _scores_differ(site: Site, ours: Attention, theirs: Attention) -> Iterator[Finding]:
    both = ~ours.blocked & ~theirs.blocked
    first, second = ours.scores[both], theirs.scores[both]
    step = max(1, first.size // _MOST_SCORES)
    first, second = first[::step], second[::step]
    if first.size < 8 or residual(second, first) <= site.fit:
        return
    factor = scale_of(second, first)
    left = residual(first * factor, second)
    if factor > 0 and left <= bound_of(site):
        if ours.scale and theirs.scale:
            yield scale_finding(site, ours.scale, theirs.scale, left)
        else:
            yield Finding(
                "attention-scale",
                f"the port's attention scores are the reference's times {nice(factor)} throughout",
                left,
                f"Divide the scale by {nice(factor)} in {site.port.node.class_name}.",
            )
        return
    biased = list(bias_otherwise(site, ours, theirs, bound_of(site)))
    yield from biased
    if biased:
        return
    yield from _capped(site, first, second)
    yield from _heads_exchanged(site, ours, theirs, both)


def _capped(site: Site, first: Array, second: Array) -> Iterator[Finding]:
    """One side's scores are the other's with a further cap. Of scores far below two caps that is all that shows: both
    sides may cap, since 1 / c² of caps that follow one another add up."""
    for source, target, names in ((second, first, ("reference", "port")), (first, second, ("port", "reference"))):
        found = fitted_cap(source, target)
        if found is not None and found[1] <= bound_of(site) and not math.isinf(found[0]):
            cap, left = found
            yield Finding(
                "soft-cap",
                f"the {names[0]}'s attention scores are the {names[1]}'s with a further cap of {nice(cap)}: the "
                f"{names[1]} does not cap them, or caps them higher",
                left,
                f"Give {site.port.node.class_name} the cap of the reference: where the {names[1]} caps too, 1 / c² of "
                f"the two differ by 1 / {nice(cap)}².",
            )
            return


def _heads_exchanged(site: Site, ours: Attention, theirs: Attention, both: Array) -> Iterator[Finding]:
    """Every head of the port's scores is another head's of the reference."""
    heads = ours.heads
    order = []
    for head in range(heads):
        open_pairs = both[:, head]
        wanted = theirs.scores[:, head][open_pairs]
        errors = [residual(ours.scores[:, other][open_pairs], wanted) for other in range(heads)]
        order.append(int(np.argmin(errors)))
        if min(errors) > bound_of(site):
            return
    if order != list(range(heads)):
        yield Finding(
            "gqa-layout",
            f"the port's attention heads are the reference's in the order {order[:8]}",
            0.0,
            f"Match query and key heads as the reference does in {site.port.node.class_name}.",
        )


# what the context says


def _values_matched_otherwise(site: Site, ours: Attention, theirs: Attention) -> Iterator[Finding]:
    """Equal probabilities, another context: value heads repeated in another order."""
    if ours.output is None or theirs.output is None or ours.output.shape != theirs.output.shape:
        return
    if residual(theirs.probabilities, ours.probabilities) > bound_of(site):
        return
    clean = [
        residual(theirs.output[:, head], ours.output[:, head]) <= bound_of(site) for head in range(ours.output.shape[1])
    ]
    if any(clean) and not all(clean):
        yield Finding(
            "gqa-layout",
            f"probabilities agree, and the context differs in heads {[h for h, ok in enumerate(clean) if not ok][:8]}: "
            "value heads are matched otherwise",
            0.0,
            f"Repeat value heads as the reference does in {site.port.node.class_name}.",
        )
