"""Which tokens are padding, and how far two tensors lie apart on the others."""

from __future__ import annotations

import numpy as np

from twinlens.diffing.compare import relative_error
from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array


def padding_of(side: Side, shape: tuple[int, ...] = ()) -> Array | None:
    """The root's argument of zeros and ones that says which tokens are real, bool (batch, length), of `shape` where one
    is given; None where there is none or it keeps all."""
    if not side.trace.calls:
        return None
    for slot in side.trace.calls[0].inputs:
        tensor = slot.tensor
        if tensor is None or len(tensor.shape) != 2 or not side.values.has(tensor):
            continue
        if shape and tensor.shape != tuple(shape[:2]):
            continue
        values = side.values.array(tensor)
        if np.isin(values, (0, 1)).all() and not values.all() and values.any():
            return values.astype(bool)
    return None


def error_on_real_tokens(reference: Array, port: Array, mask: Array) -> float | None:
    """The relative error without padding; None where no dimensions are those of the mask, or where a side alone is not
    finite: that spreads."""
    if reference.shape != port.shape or not np.array_equal(np.isfinite(reference), np.isfinite(port)):
        return None
    batch, length = mask.shape
    shape = reference.shape
    if shape[:1] == (batch * length,):
        kept = mask.reshape(-1)
        return relative_error(port[kept], reference[kept])
    if not shape or shape[0] != batch:
        return None
    axis = next((axis for axis in (1, 2) if len(shape) > axis + 1 and shape[axis] == length), None)
    if axis is None:
        return None
    ours, theirs = (np.moveaxis(values, axis, 1)[mask] for values in (reference, port))
    return relative_error(theirs, ours)
