"""Whether a port's projections hold the rows that its rotation and its split need."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, residual
from twinlens.diffing.causes.head_sources import norms
from twinlens.diffing.causes.projections import head_of_interleaving
from twinlens.diffing.causes.score_ways import ScoreFit
from twinlens.diffing.columns import coarser, is_plain, output_rows, row_keys, row_map
from twinlens.diffing.values import Array

_SAME_WEIGHTS = 1e-2
_FEW = 0.1
"""Share of rows."""


def bound_of(site: Site) -> float:
    """Scores are sums over recorded factors: rounding adds up a little more than in one operation."""
    return 3 * site.fit


def order_of_rows(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """Whether the port's projections hold the rows that its rotation and its split need."""
    layouts = ours.layout, theirs.layout
    size = ours.query.heads.shape[2]
    expected = _expected_rows(ours, theirs, size)
    if _holds_columns(ours, theirs, expected, bound_of(site)):
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
    elif layouts[0] != layouts[1] and _holds_columns(ours, theirs, np.arange(len(expected)), bound_of(site)):
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
        call = _projection_of(view, fit.query.tensor)
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
    calls = _projection_of(site.reference, ours.query.tensor), _projection_of(site.port, theirs.query.tensor)
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


def keys_from_elsewhere(site: Site, ours: ScoreFit, theirs: ScoreFit, left: float) -> Iterator[Finding]:
    """Whether the port's key rows are rows of the reference's fused projection that do not become keys there."""
    calls = _projection_of(site.reference, ours.key.tensor), _projection_of(site.port, theirs.key.tensor)
    if calls[0] is None or calls[1] is None:
        return
    reference, port = site.reference.side, site.port.side
    whole, other = output_rows(reference, reference.node_of(calls[0])), output_rows(port, port.node_of(calls[1]))
    own = None if whole is None else _key_rows(whole, ours)
    theirs_own = None if other is None else _key_rows(other, theirs)
    if whole is None or own is None or theirs_own is None or own.shape[1:] != theirs_own.shape[1:]:
        return
    dtype = coarser(site.reference.tensor.dtype, site.port.tensor.dtype)
    wanted, known, held = set(row_keys(own, dtype)), set(row_keys(whole, dtype)), row_keys(theirs_own, dtype)
    share = [sum(key in rows for key in held) / len(held) for rows in (wanted, known)]
    if share[0] < _FEW and share[1] > 1 - _FEW:
        yield Finding(
            "fused-order",
            f"the port's {theirs.key.label} holds rows of the reference's {ours.key.label} that are no keys there",
            left,
            "Split the fused projection in the order that the reference's forward takes it apart.",
            calls=calls,
        )


def _key_rows(rows: Array, fit: ScoreFit) -> Array | None:
    heads, (_length, kv_heads, size) = fit.query.heads.shape[1], fit.key.heads.shape
    width, part = rows.shape[0], fit.key.part
    if part == "whole":
        return rows if width == kv_heads * size else None
    if part == "first half":
        return rows[: width // 2]
    if width != (heads + 2 * kv_heads) * size:
        return None
    if part == "block 1":
        return rows[heads * size : (heads + kv_heads) * size]
    if part == "by group 1":
        return rows.reshape(kv_heads, heads // kv_heads + 2, size, -1)[:, -2].reshape(kv_heads * size, -1)
    if part == "by dimension 1":
        return rows.reshape(heads, size, 3, -1)[:, :, 1].reshape(heads * size, -1)
    return None


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
    call = _projection_of(view, fit.query.tensor)
    rows = output_rows(view.side, view.side.node_of(call)) if call is not None else None
    return None if rows is None else _taken_rows(rows, fit.query.part, fit, size)


def _projection_of(view: View, tensor: int) -> int | None:
    """The call whose output a tensor is; of normed ones, the call whose memory the norm was given."""
    flow, calls = view.side.flow, view.side.trace.calls
    birth = flow.births[tensor]
    if birth.side != "outputs":
        return None
    if not norms(view.side, birth.call):
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
