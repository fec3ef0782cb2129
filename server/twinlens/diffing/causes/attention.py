"""Attention: scores made otherwise, masks, heads matched otherwise, scales and caps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from twinlens.diffing.causes.attention_view import BLOCKED, Attention, attention_call, attention_of
from twinlens.diffing.causes.evidence import Finding, Site, View, nice, residual, scale_of
from twinlens.diffing.causes.masks import compare_blocked, find_mask
from twinlens.diffing.causes.projections import head_of_interleaving
from twinlens.diffing.causes.rotary import compare_tables, tables_of
from twinlens.diffing.causes.score_fit import ScoreFit, fit_scores, rotated
from twinlens.diffing.causes.sums import fitted_cap, soft_cap_finding
from twinlens.diffing.columns import coarser, is_plain, output_rows, row_keys, row_map
from twinlens.diffing.values import Array

_MOST_SCORES = 200_000
_SAME_WEIGHTS = 1e-2


def find(site: Site) -> Iterator[Finding]:
    mask = _mask_tensors(site)
    if mask is not None:
        yield mask
        return
    pair = _attentions(site)
    if pair is None:
        return
    ours, theirs = pair
    masks = list(find_mask(site, ours, theirs))
    yield from masks
    if ours.scores.shape != theirs.scores.shape:
        return
    found = [] if _scores_agree(site, ours, theirs) else list(_fitted_otherwise(site, pair))
    yield from found
    if found or masks:
        return
    direct = list(_scores_differ(site, ours, theirs)) if site.is_clean else []
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
    ours = fit_scores(site.reference, pair[0], _bound(site))
    theirs = fit_scores(site.port, pair[1], _bound(site)) if ours is not None else None
    if ours is not None and theirs is not None:
        yield from _made_otherwise(site, ours, theirs)


def _bound(site: Site) -> float:
    """Scores are sums over recorded factors: rounding adds up a little more than in one operation."""
    return 3 * site.fit


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


# what the fits say


def _made_otherwise(site: Site, ours: ScoreFit, theirs: ScoreFit) -> Iterator[Finding]:
    left = max(ours.residual, theirs.residual)
    name = site.port.node.class_name
    norms = [*_norms(site, ours, theirs, left), *_unrotated(site, ours, theirs, left)]
    yield from norms
    if norms:
        return
    order = list(_order_of_rows(site, ours, theirs, left))
    yield from order
    if order:
        return
    if ours.heads != theirs.heads:
        said = {"repeated": "head h with key head h // groups", "tiled": "head h with key head h % key heads"}
        yield Finding(
            "gqa-layout",
            f"the reference pairs query {said[ours.heads]}, the port {said[theirs.heads]}",
            left,
            f"Use {'repeat_interleave' if ours.heads == 'repeated' else 'repeat'} for k and v in {name}.",
        )
        return
    found: list[Finding] = []
    if ours.table is not None and theirs.table is not None:
        effect = _effect_of_table(ours, theirs)
        found += [replace(finding, effect=effect) for finding in compare_tables(site, ours.table, theirs.table)]
    if abs(ours.scale - theirs.scale) > max(1e-3, 2 * site.noise.unit) * ours.scale:
        finding = _scale_finding(site, ours.scale, theirs.scale, left)
        found.append(replace(finding, effect=abs(ours.scale - theirs.scale) / ours.scale))
    if ours.cap != theirs.cap and _effect_of_cap(ours, theirs) > max(10 * left, site.fit):
        found.append(soft_cap_finding(site, "attention scores", ours.cap, theirs.cap, left))
    large = [finding for finding in found if finding.effect > site.noise.floor]
    yield from sorted(large or found, key=lambda finding: -finding.effect)


def _effect_of_cap(ours: ScoreFit, theirs: ScoreFit) -> float:
    """How far, relative to itself, the largest score is moved by the smaller cap, on the side with the smaller scores:
    where that is next to nothing, nobody can tell which cap the side has."""
    cap, top = min(ours.cap, theirs.cap), min(ours.top, theirs.top)
    return 1 - cap * math.tanh(top / cap) / top if top > 0 and math.isfinite(cap) else 0.0


def _effect_of_table(ours: ScoreFit, theirs: ScoreFit) -> float:
    """How far the reference's table alone would move the port's queries."""
    heads = theirs.query.heads
    turned = [rotated(heads, theirs.layout, fit.table, 0) for fit in (ours, theirs)]
    return residual(turned[0], turned[1]) if turned[0] is not None and turned[1] is not None else 1.0


def _unrotated(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """One side rotates, the other does not, or by a table of zeros."""
    if (ours.layout == "none") == (theirs.layout == "none"):
        return
    name = site.port.node.class_name
    if ours.table is not None:
        length = len(theirs.query.heads)
        for table in tables_of(site.port, length):
            broken = list(compare_tables(site, ours.table, table))
            if any(finding.code == "buffer-not-initialised" for finding in broken):
                yield broken[0]
                return
        yield Finding(
            "rope-base", "the reference rotates q and k, the port does not", left, f"Rotate q and k in {name}."
        )
    else:
        yield Finding(
            "rope-base", "the port rotates q and k, the reference does not", left, f"Do not rotate in {name}."
        )


def _norms(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    stages = ours.query.stage, theirs.query.stage
    name = site.port.node.class_name
    plain = "projected"
    if (stages[0] == plain) != (stages[1] == plain):
        who = ("reference", "port") if stages[1] == plain else ("port", "reference")
        yield Finding(
            "qk-norm",
            f"the {who[0]} norms q and k, the {who[1]} does not",
            left,
            f"{'Norm' if who[0] == 'reference' else 'Do not norm'} q and k in {name}.",
        )
    elif "over all heads" in stages[1] or "over all heads" in stages[0]:
        if stages[0] != stages[1]:
            said = ["over all heads" if "all heads" in stage else "each head alone" for stage in stages]
            yield Finding(
                "qk-norm",
                f"the reference norms {said[0]}, the port {said[1]}",
                left,
                f"Norm q and k {said[0]} in {name}.",
            )
    elif stages == ("normed", "normed"):
        ahead = [_rotates_first(view, fit) for view, fit in zip(site.views, (ours, theirs), strict=True)]
        if ahead[0] != ahead[1]:
            said = ["before" if not first else "after" for first in ahead]
            yield Finding(
                "qk-norm",
                f"the reference norms q and k {said[0]} the rotation, the port {said[1]} it",
                left,
                f"Norm q and k {said[0]} the rotation in {name}.",
            )
        elif _norm_width(site.reference, ours) != _norm_width(site.port, theirs):
            widths = _norm_width(site.reference, ours), _norm_width(site.port, theirs)
            yield Finding(
                "qk-norm",
                f"the reference norms {widths[0]} columns at a time, the port {widths[1]}",
                left,
                f"Norm {widths[0]} columns at a time in {name}.",
            )


def _rotates_first(view: View, fit: ScoreFit) -> bool:
    """Whether the scores follow from the norms' outputs without a rotation: it came before them."""
    del view
    return fit.layout == "none"


def _norm_width(view: View, fit: ScoreFit) -> int:
    birth = view.side.flow.births[fit.query.tensor]
    call = view.side.trace.calls[birth.call]
    return next((slot.tensor.shape[-1] for slot in call.inputs if slot.tensor is not None), 0)


def _order_of_rows(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """Whether the port's projections hold the rows that its rotation and its split need."""
    layouts = ours.layout, theirs.layout
    size = ours.query.heads.shape[2]
    expected = _expected_rows(ours, theirs, size)
    if _holds_columns(ours, theirs, expected, _bound(site)):
        return
    rows = [_query_rows(view, fit, size) for view, fit in zip(site.views, (ours, theirs), strict=True)]
    if ours.query.part != theirs.query.part and _same_projection(site, ours, theirs):
        yield Finding(
            "fused-order",
            f"the reference takes queries from {ours.query.label} {_read(ours)}, the port {_read(theirs)}, and both "
            "projections are one",
            left,
            f"Take the projection apart as the reference does in {site.port.node.class_name}.",
        )
    elif rows[0] is not None and rows[1] is not None and rows[0].shape == rows[1].shape:
        order = row_map(rows[0], rows[1], coarser(site.reference.tensor.dtype, site.port.tensor.dtype))
        if order is None or not np.array_equal(order, expected):
            yield from _wrong_rows(site, ours, theirs, order, layouts, left)
    elif layouts[0] != layouts[1] and _holds_columns(ours, theirs, np.arange(len(expected)), _bound(site)):
        yield _layout_finding(site, layouts, left)


def _read(fit: ScoreFit) -> str:
    part = fit.query.part.rpartition(" ")[0]
    return {
        "block": "in blocks (all queries, all keys, all values)",
        "by group": "by head (its queries, key and value)",
    }.get(part, part or "whole")


def _projections(site: Site, ours: ScoreFit, theirs: ScoreFit) -> tuple[Array | None, Array | None]:
    """The weights, one row for each output, of the projections that queries come from."""
    found: list[Array | None] = []
    for view, fit in zip(site.views, (ours, theirs), strict=True):
        call = _projection_of(view, fit)
        found.append(None if call is None else output_rows(view.side, view.side.node_of(call)))
    return found[0], found[1]


def _same_projection(site: Site, ours: ScoreFit, theirs: ScoreFit) -> bool:
    """Whether both sides' queries come from projections of equal weights."""
    rows = _projections(site, ours, theirs)
    return rows[0] is not None and rows[1] is not None and residual(rows[1], rows[0]) <= _SAME_WEIGHTS


def _holds_columns(ours: ScoreFit, theirs: ScoreFit, order: Array, bound: float) -> bool:
    """Whether the port's queries, before rotation, are the reference's with their columns in `order`."""
    first, second = (fit.query.heads.reshape(len(fit.query.heads), -1) for fit in (ours, theirs))
    return first.shape == second.shape and residual(second, first[:, order]) <= bound


def _wrong_rows(
    site: Site, ours: ScoreFit, theirs: ScoreFit, order: Array | None, layouts: tuple[str, str], left: float
) -> Iterator[Finding]:
    calls = _projection_of(site.reference, ours), _projection_of(site.port, theirs)
    if order is not None and is_plain(order) and layouts[0] != layouts[1]:
        yield _layout_finding(site, layouts, left)
    elif order is not None and head_of_interleaving(order):
        yield Finding(
            "rope-layout",
            f"the rows of the port's {theirs.query.label} are permuted within each head, and the port rotates "
            f"{layouts[1]} (the reference {layouts[0]})",
            left,
            "Permute the rows of q and k for the rotation that the port applies, once.",
            calls=calls,
        )
    elif order is None and _are_elsewhere(site, ours, theirs):
        yield Finding(
            "fused-order",
            f"the port's {theirs.query.label} holds other rows than those that the reference takes as queries from "
            f"{ours.query.label} ({ours.query.part})",
            left,
            "Split the fused projection in the order that the reference's forward takes it apart.",
            calls=calls,
        )


def _are_elsewhere(site: Site, ours: ScoreFit, theirs: ScoreFit) -> bool:
    """Whether the port's query rows are rows of the reference's projection, if not those that become queries."""
    rows = _projections(site, ours, theirs)
    if rows[0] is None or rows[1] is None or rows[0].shape[1:] != rows[1].shape[1:]:
        return False
    dtype = coarser(site.reference.tensor.dtype, site.port.tensor.dtype)
    known = set(row_keys(rows[0], dtype))
    return sum(key in known for key in row_keys(rows[1], dtype)) > 0.9 * len(rows[1])


def _layout_finding(site: Site, layouts: tuple[str, str], left: float) -> Finding:
    said = {"halves": "the two halves of a head (rotate_half)", "pairs": "neighbouring pairs (interleaved)"}
    return Finding(
        "rope-layout",
        f"the reference rotates {said[layouts[0]]}, the port {said[layouts[1]]}, with the same rows in q and k",
        left,
        f"Rotate {layouts[0]} in {site.port.node.class_name}, or permute the rows of q and k in the conversion.",
    )


def _expected_rows(ours: ScoreFit, theirs: ScoreFit, size: int) -> Array:
    """Which of the reference's query rows the port's should be, in order, for both rotations to mean the same."""
    heads = ours.query.heads.shape[1]
    within = np.arange(size)
    turned = 2 * ours.table.pairs if ours.table is not None else size
    if (ours.layout, theirs.layout) == ("pairs", "halves"):
        within[:turned] = np.arange(turned).reshape(-1, 2).T.reshape(-1)
    elif (ours.layout, theirs.layout) == ("halves", "pairs"):
        within[:turned] = np.arange(turned).reshape(2, -1).T.reshape(-1)
    return (np.arange(0, heads * size, size)[:, None] + within).reshape(-1)


def _query_rows(view: View, fit: ScoreFit, size: int) -> Array | None:
    """The rows of the weight that become queries; None where it is not known or was not kept."""
    call = _projection_of(view, fit)
    rows = output_rows(view.side, view.side.node_of(call)) if call is not None else None
    return None if rows is None else _taken_rows(rows, fit.query.part, fit, size)


def _projection_of(view: View, fit: ScoreFit) -> int | None:
    """The call whose output the queries are; of normed ones, the call whose memory the norm was given."""
    flow, calls = view.side.flow, view.side.trace.calls
    birth = flow.births[fit.query.tensor]
    if birth.side != "outputs":
        return None
    if view.side.node_of(birth.call).kind != "norm":
        return birth.call
    given = next((slot.tensor for slot in calls[birth.call].inputs if slot.tensor is not None), None)
    for child in flow.inside(view.frame):
        is_before = given is not None and flow.left[child] < flow.entered[birth.call]
        if is_before and any(slot.tensor and slot.tensor.storage == given.storage for slot in calls[child].outputs):
            return child
    return None


def _taken_rows(rows: Array, part: str, fit: ScoreFit, size: int) -> Array | None:
    """The rows of a projection that become queries."""
    heads, kv_heads = fit.query.heads.shape[1], fit.key.heads.shape[1]
    width = rows.shape[0]
    if part == "whole":
        return rows if width == heads * size else None
    if width != (heads + 2 * kv_heads) * size:
        return None
    if part == "block 0":
        return rows[: heads * size]
    groups = heads // kv_heads
    if part == "by group 0":
        return rows.reshape(kv_heads, groups + 2, size, -1)[:, :groups].reshape(heads * size, -1)
    if part == "by dimension 0":
        return rows.reshape(heads, size, 3, -1)[:, :, 0].reshape(heads * size, -1)
    return None


def _scale_finding(site: Site, ours: float, theirs: float, left: float) -> Finding:
    said = [f"{nice(value)} (1 / √{round(1 / value**2)})" if 0 < value < 1 else nice(value) for value in (ours, theirs)]
    return Finding(
        "attention-scale",
        f"the reference multiplies attention scores by {said[0]}, the port by {said[1]}",
        left,
        f"Scale scores by {nice(ours)} in {site.port.node.class_name}.",
    )


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
    if factor > 0 and left <= _bound(site):
        if ours.scale and theirs.scale:
            yield _scale_finding(site, ours.scale, theirs.scale, left)
        else:
            yield Finding(
                "attention-scale",
                f"the port's attention scores are the reference's times {nice(factor)} throughout",
                left,
                f"Divide the scale by {nice(factor)} in {site.port.node.class_name}.",
            )
        return
    yield from _capped(site, first, second)
    yield from _heads_exchanged(site, ours, theirs, both)


def _capped(site: Site, first: Array, second: Array) -> Iterator[Finding]:
    for source, target, is_ours in ((second, first, True), (first, second, False)):
        found = fitted_cap(source, target)
        if found is not None and found[1] <= _bound(site) and not math.isinf(found[0]):
            caps = (found[0], math.inf) if is_ours else (math.inf, found[0])
            yield soft_cap_finding(site, "attention scores", *caps, found[1])
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
        if min(errors) > _bound(site):
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
    if residual(theirs.probabilities, ours.probabilities) > _bound(site):
        return
    clean = [
        residual(theirs.output[:, head], ours.output[:, head]) <= _bound(site) for head in range(ours.output.shape[1])
    ]
    if any(clean) and not all(clean):
        yield Finding(
            "gqa-layout",
            f"probabilities agree, and the context differs in heads {[h for h, ok in enumerate(clean) if not ok][:8]}: "
            "value heads are matched otherwise",
            0.0,
            f"Repeat value heads as the reference does in {site.port.node.class_name}.",
        )
