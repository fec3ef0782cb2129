"""Which experts each token was sent to, as calls of `topk` show it."""

from __future__ import annotations

import numpy as np

from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array


def same_choices(reference: Side, frame: int, port: Side, port_frame: int) -> Array | None:
    """(tokens,): whether both sides chose the same experts; None where either shows no choice inside its frame."""
    ours, theirs = _choices(reference, frame), _choices(port, port_frame)
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    return (ours == theirs).all(-1)


def _choices(side: Side, frame: int) -> Array | None:
    """(tokens, chosen), sorted: the last `topk` inside the frame."""
    found: Array | None = None
    for child in side.flow.inside(frame):
        call = side.trace.calls[child]
        if call.class_name != "topk" or not call.is_function:
            continue
        for slot in call.outputs:
            if slot.tensor is not None and "int" in slot.tensor.dtype and side.values.has(slot.tensor):
                values = side.values.array(slot.tensor)
                found = np.sort(values.reshape(-1, values.shape[-1]), -1)
    return found
