"""What is added to attention scores: a bias by distance or head that one side adds, or adds times another factor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.attention_view import Attention
from twinlens.diffing.causes.evidence import MOST_SEEN, Finding, Site, View, nice, residual, scale_of
from twinlens.diffing.values import Array

_SAME = 1e-2


def bias_otherwise(site: Site, ours: Attention, theirs: Attention, fit: float) -> Iterator[Finding]:
    """The two sides' scores differ by a multiple of a tensor that one of them could see."""
    both = ~ours.blocked & ~theirs.blocked
    gap = np.where(both, theirs.scores - ours.scores, 0.0)
    whole = float(np.sqrt(np.sum(np.where(both, ours.scores, 0.0) ** 2)))
    for view, attention in ((site.reference, ours), (site.port, theirs)):
        for label, bias in _biases(view, attention):
            spread = np.where(both, np.broadcast_to(bias, gap.shape), 0.0)
            factor = scale_of(gap, spread)
            left = residual(spread * factor, gap) * float(np.sqrt(np.sum(gap**2))) / max(whole, 1e-30)
            if left > fit or abs(factor) < _SAME or residual(spread * factor, gap) > _SAME:
                continue
            yield _finding(site, label, factor if view is site.reference else -factor, left, view is site.reference)
            return


def _finding(site: Site, label: str, factor: float, left: float, is_of_reference: bool) -> Finding:
    """`factor` is what is missing of the bias on the other side, as a multiple of it, with the sign turned."""
    who = ("reference", "port") if is_of_reference else ("port", "reference")
    other = 1 + factor
    said = "does not" if abs(other) < _SAME else f"adds it times {nice(other)}"
    return Finding(
        "attention-bias",
        f"the {who[0]} adds {label} to the attention scores, the {who[1]} {said}",
        left,
        f"Add the bias to the scores as the reference does in {site.port.node.class_name}.",
    )


def _biases(view: View, attention: Attention) -> Iterator[tuple[str, Array]]:
    """(1, heads, queries, keys) of tensors of those sizes, in whatever order."""
    _batch, heads, _queries, keys = attention.scores.shape
    wanted = (heads, attention.query_count, keys)
    for item in view.seen[-MOST_SEEN:]:
        shape = tuple(size for size in item.tensor.shape if size != 1 or size in wanted)
        if len(shape) != 3:
            continue
        values = np.asarray(view.array(item.tensor), np.float64).reshape(shape)
        for order in ((0, 1, 2), (2, 0, 1), (2, 1, 0)):
            if tuple(shape[axis] for axis in order) == wanted:
                yield item.label, values.transpose(order)[None][:, :, attention.queries]
