"""What two fits of attention scores say: normed, rotated, repeated, scaled or capped otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from twinlens.diffing.causes.caps import soft_cap_finding
from twinlens.diffing.causes.evidence import Finding, Site, View, nice, residual
from twinlens.diffing.causes.head_sources import is_given_projections, made_by_partners
from twinlens.diffing.causes.query_rows import keys_from_elsewhere, order_of_rows
from twinlens.diffing.causes.rotary import compare_tables
from twinlens.diffing.causes.rotary_tables import tables_of
from twinlens.diffing.causes.rotation import rotated
from twinlens.diffing.causes.score_ways import ScoreFit

_TURNED = {"both": "queries and keys", "query alone": "the queries alone", "key alone": "the keys alone"}


def made_otherwise(site: Site, ours: ScoreFit, theirs: ScoreFit) -> Iterator[Finding]:
    left = max(ours.residual, theirs.residual)
    name = site.port.node.class_name
    first = [
        *_norms(site, ours, theirs, left),
        *_unrotated(site, ours, theirs, left),
        *_turned_otherwise(site, ours, theirs, left),
        *_angles_laid_out_otherwise(site, ours, theirs, left),
        *_from_another_module(site, ours, theirs, left),
    ]
    yield from first[:1]
    if first:
        return
    order = [*order_of_rows(site, ours, theirs, left), *keys_from_elsewhere(site, ours, theirs, left)][:1]
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
        finding = scale_finding(site, ours.scale, theirs.scale, left)
        found.append(replace(finding, effect=abs(ours.scale - theirs.scale) / ours.scale))
    if ours.cap != theirs.cap and _effect_of_cap(ours, theirs) > max(10 * left, site.fit):
        found.append(soft_cap_finding(site, "attention scores", ours.cap, theirs.cap, left))
    large = [finding for finding in found if finding.effect > site.noise.floor]
    yield from sorted(large or found, key=lambda finding: -finding.effect)


def _effect_of_cap(ours: ScoreFit, theirs: ScoreFit) -> float:
    """How far apart, relative to itself, the two caps put the largest score of the side with the smaller scores: where
    that is next to nothing, nobody can tell which cap the side has."""
    top = min(ours.top, theirs.top)
    capped = [top if math.isinf(fit.cap) else fit.cap * math.tanh(top / fit.cap) for fit in (ours, theirs)]
    return abs(capped[0] - capped[1]) / top if top > 0 else 0.0


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
            if any(finding.code in ("buffer-not-initialised", "position-offset") for finding in broken):
                yield broken[0]
                return
        yield Finding(
            "rope-applied", "the reference rotates q and k, the port does not", left, f"Rotate q and k in {name}."
        )
    else:
        yield Finding(
            "rope-applied", "the port rotates q and k, the reference does not", left, f"Do not rotate in {name}."
        )


def _turned_otherwise(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """One side rotates queries or keys alone, or the other way round."""
    if ours.turn == theirs.turn or ours.table is None or theirs.table is None:
        return
    name = site.port.node.class_name
    if "backwards" not in (ours.turn, theirs.turn):
        said = [_TURNED[turn] for turn in (ours.turn, theirs.turn)]
        yield Finding(
            "rope-applied",
            f"the reference rotates {said[0]}, the port {said[1]}",
            left,
            f"Rotate {said[0]} in {name}.",
        )
        return
    who = ("port", "reference") if theirs.turn == "backwards" else ("reference", "port")
    if ours.table.is_sine_first != theirs.table.is_sine_first:
        yield Finding(
            "cos-sin-swapped",
            f"the {who[0]} multiplies by the sine where the {who[1]} multiplies by the cosine: what makes the rotary "
            "table and what takes it name cos and sin in two orders",
            left,
            f"Take cos and sin in the order in which they are returned, in {name}.",
        )
        return
    yield Finding(
        "rope-direction",
        f"the {who[0]} rotates backwards, by minus the angle: rotate_half returns (x2, -x1) for (-x2, x1), or cos and "
        "sin are exchanged (scores do not tell these two apart)",
        left,
        f"Rotate as the reference does in {name}: x cos + (-x2, x1) sin.",
    )


def _angles_laid_out_otherwise(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """One side pairs dimensions one way, and repeats the angles the other way."""
    mixed = " by " in ours.layout, " by " in theirs.layout
    if mixed[0] == mixed[1]:
        return
    who, layout = ("port", theirs.layout) if mixed[1] else ("reference", ours.layout)
    is_pairs = layout == "pairs by halves"
    said = "neighbouring dimensions" if is_pairs else "the two halves of a head"
    laid = "twice, one after the other (cat)" if is_pairs else "each twice in a row (repeat_interleave)"
    yield Finding(
        "rope-layout",
        f"the {who} rotates {said}, but its table holds the angles {laid}: the two do not go together",
        left,
        f"Lay the angles out as {site.port.node.class_name} pairs dimensions: cat for halves, repeat_interleave for "
        "pairs.",
    )


def _from_another_module(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """Queries or keys that the two sides take from modules that do not stand for each other."""
    for what, first, second in (("queries", ours.query, theirs.query), ("keys", ours.key, theirs.key)):
        if not made_by_partners(site, first.tensor, second.tensor):
            normed = "normed" in (first.stage, second.stage)
            yield Finding(
                "qk-norm" if normed else "fused-order",
                f"the reference takes {what} from {first.label}, the port from {second.label}, which is the partner of "
                "another module",
                left,
                f"Take {what} from the partner of {first.label} in {site.port.node.class_name}, or exchange the "
                "weights in the conversion.",
            )
            return


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
        # Where the scores follow from the norms' outputs without a rotation, it came before them, or there is none.
        ahead = [
            fit.layout == "none" and not is_given_projections(view, fit.query.tensor)
            for view, fit in zip(site.views, (ours, theirs), strict=True)
        ]
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


def _norm_width(view: View, fit: ScoreFit) -> int:
    birth = view.side.flow.births[fit.query.tensor]
    call = view.side.trace.calls[birth.call]
    return next((slot.tensor.shape[-1] for slot in call.inputs if slot.tensor is not None), 0)


def scale_finding(site: Site, ours: float, theirs: float, left: float) -> Finding:
    said = [f"{nice(value)} (1 / √{round(1 / value**2)})" if 0 < value < 1 else nice(value) for value in (ours, theirs)]
    return Finding(
        "attention-scale",
        f"the reference multiplies attention scores by {said[0]}, the port by {said[1]}",
        left,
        f"Scale scores by {nice(ours)} in {site.port.node.class_name}.",
    )
