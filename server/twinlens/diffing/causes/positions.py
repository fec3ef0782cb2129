"""Lookups: which rows of its table an embedding returned, and times what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, nice, residual, short
from twinlens.diffing.columns import matrix_of
from twinlens.diffing.padding import padding_of
from twinlens.diffing.values import Array

_MOST_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class _Lookup:
    """`rows` (batch, length) of the table, -1 where none fits, each multiplied by `factor`."""

    rows: Array
    factor: float
    residual: float


def find(site: Site) -> Iterator[Finding]:
    if not all(view.side.values.has(view.tensor) for view in site.views):
        return
    if all(_is_whole(view) for view in site.views):
        ours, theirs = (np.asarray(view.target()) for view in site.views)
        yield from _shifted_rows(site, ours, theirs, "position")
        return
    lookups = [_lookup(view, site.fit) for view in site.views]
    if lookups[0] is None or lookups[1] is None:
        return
    first, second = lookups
    if first is None or second is None:
        return
    given = [_given_rows(view, first.rows.shape) for view in site.views]
    if given[0] is not None and given[1] is not None:
        ours, theirs = first.rows - given[0], second.rows - given[1]
        if (ours != theirs).any() and (theirs - ours == (theirs - ours).flat[0]).all():
            yield from _shifted_rows(
                site, first.rows, first.rows + (theirs - ours), f"row of {short(site.port.call.path)}"
            )
    elif site.is_clean:
        yield from _shifted_rows(site, first.rows, second.rows, f"row of {short(site.port.call.path)}")
    yield from _shifted_table(site, second)
    if (first.rows == second.rows).all() and abs(first.factor - second.factor) > 2e-4 * abs(first.factor):
        yield _scaled(site, first, second)


def _given_rows(view: View, shape: tuple[int, ...]) -> Array | None:
    """The whole numbers that the module was asked for, where they are as many as it returned rows."""
    for slot in view.call.inputs:
        tensor = slot.tensor
        if tensor is not None and "int" in tensor.dtype and view.side.values.has(tensor):
            values = np.asarray(view.array(tensor), np.int64)
            return values.reshape(shape) if values.size == math.prod(shape) else None
    return None


def _shifted_table(site: Site, theirs: _Lookup) -> Iterator[Finding]:
    """The port's table is the reference's with its rows moved."""
    weights = [matrix_of(view.node) for view in site.views]
    if weights[0] is None or weights[1] is None or weights[0].tensor.shape != weights[1].tensor.shape:
        return
    if not all(view.side.values.has(item.tensor) for view, item in zip(site.views, weights, strict=True) if item):
        return
    ours, own = (
        np.asarray(view.array(item.tensor), np.float64) for view, item in zip(site.views, weights, strict=True) if item
    )
    if residual(own, ours) <= 1e-2:
        return
    used = np.unique(theirs.rows[theirs.rows >= 0])
    for shift in (-3, -2, -1, 1, 2, 3):
        kept = used[(used + shift >= 0) & (used + shift < len(ours))]
        if len(kept) > 1 and residual(own[kept], ours[kept + shift]) <= 1e-2:
            name = f"{short(site.port.call.path)}.weight"
            yield Finding(
                "position-offset",
                f"row i of {name} is the reference's row i {'+' if shift > 0 else '-'} {abs(shift)}",
                residual(own[kept], ours[kept + shift]),
                f"Load {name} without moving its rows, or look up the positions that the reference does.",
            )
            return


def _scaled(site: Site, ours: _Lookup, theirs: _Lookup) -> Finding:
    width = site.port.tensor.shape[-1]
    root = math.sqrt(width)
    is_rounding = abs(ours.factor - theirs.factor) < 0.01 * abs(ours.factor)
    said = [f"{value:.6g}" if is_rounding else nice(value) for value in (ours.factor, theirs.factor)]
    why = f"; √{width} is {root:.6g}" if min(abs(v - root) for v in (ours.factor, theirs.factor)) < 0.01 * root else ""
    return Finding(
        "embedding-scale",
        f"the reference multiplies the embedding by {said[0]}, the port by {said[1]}{why}",
        max(ours.residual, theirs.residual),
        f"Multiply the embedding by {said[0]}.",
    )


def _is_whole(view: View) -> bool:
    return "int" in view.tensor.dtype


def _shifted_rows(site: Site, ours: Array, theirs: Array, what: str) -> Iterator[Finding]:
    if ours.size != theirs.size or ours.size < 2:
        return
    if ours.ndim != theirs.ndim or ours.shape != theirs.shape:
        theirs = theirs.reshape(ours.shape)
    gap = theirs.astype(np.int64) - ours.astype(np.int64)
    known = (ours >= 0) & (theirs >= 0)
    if not known.any() or not gap[known].any():
        return
    shift = int(gap[known].flat[0])
    if (gap[known] == shift).all():
        yield Finding(
            "position-offset",
            f"every {what} is the reference's {'+' if shift > 0 else '-'} {abs(shift)} "
            f"(the first token takes {int(theirs[known].flat[0])}, in the reference {int(ours[known].flat[0])})",
            0.0,
            f"{'Take' if shift > 0 else 'Add'} {abs(shift)} {'off' if shift > 0 else 'to'} the positions in "
            f"{site.port.node.class_name}.",
        )
        return
    masks = (padding_of(view.side, ours.shape) for view in site.views)
    mask = next((found for found in masks if found is not None), None)
    if mask is not None and _ignores_padding(mask, ours, theirs, gap):
        yield Finding(
            "positions-ignore-padding",
            "the port counts positions from the start of the row, padding included; the reference counts the tokens "
            "that the attention mask keeps",
            0.0,
            "Make position_ids from the attention mask: its cumulative sum, minus 1, and at padding any value.",
        )
    elif mask is not None and _ignores_padding(mask, theirs, ours, -gap):
        yield Finding(
            "positions-ignore-padding",
            "the port counts only the tokens that the attention mask keeps; the reference counts from the start of the "
            "row",
            0.0,
            "Count positions from the start of the row.",
        )


def _ignores_padding(mask: Array, aware: Array, plain: Array, gap: Array) -> bool:
    """Whether `plain` counts every place of a row, and `aware` only those that `mask` keeps."""
    kept = mask.astype(bool)
    steps = np.diff(plain, axis=-1)
    is_plain = bool((steps == steps.flat[0]).all()) if steps.size else False
    has_padding = ~kept.all(-1)
    right_where_full = not gap[~has_padding].any() if (~has_padding).any() else True
    counted = np.cumsum(kept, -1)
    offset = aware - counted
    return is_plain and right_where_full and len(np.unique(offset[kept])) == 1


def _lookup(view: View, fit: float) -> _Lookup | None:
    """The rows of the frame's own table that the tensor holds."""
    weight = matrix_of(view.node)
    if weight is None or not view.is_leaf or not view.side.values.has(weight.tensor):
        return None
    if view.tensor.shape[-1:] != weight.tensor.shape[-1:] or len(view.tensor.shape) < 2:
        return None
    if view.node.kind == "linear" or math.prod(view.tensor.shape[:-1]) > _MOST_TOKENS:
        return None
    table = np.asarray(view.side.values.array(weight.tensor), np.float64)
    values = np.asarray(view.target(), np.float64)
    flat = values.reshape(-1, values.shape[-1])
    rows = _nearest(table, flat)
    chosen = table[rows]
    factor = float(np.sum(chosen * flat) / max(float(np.sum(chosen * chosen)), 1e-300))
    left = residual(chosen * factor, flat)
    if left > fit:
        return None
    shape = view.tensor.shape[:-1] if len(view.tensor.shape) > 2 else (1, *view.tensor.shape[:-1])
    return _Lookup(rows.reshape(shape), factor, left)


def _nearest(table: Array, values: Array) -> Array:
    """By row of `values`: the row of `table` of the nearest direction; -1 for a row of zeros that the table lacks."""
    sizes = np.linalg.norm(table, axis=1)
    unit = table / np.where(sizes > 0, sizes, 1)[:, None]
    rows = np.argmax(values @ unit.T, axis=1)
    zero = np.flatnonzero(sizes == 0)
    is_zero = ~values.any(1)
    rows[is_zero] = zero[0] if zero.size else rows[is_zero]
    return rows
