"""Along which axis attention's probabilities add up to 1."""

from __future__ import annotations

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View
from twinlens.diffing.values import Array

_AXES = {-1: "the keys", -2: "the queries", -3: "the heads"}
_CLOSE = 2e-2
_ENOUGH = 0.95
"""Share of the sums that must be 1; rows without a key may be zero."""


def find_axis(site: Site, ours: int, theirs: int) -> Finding | None:
    """The two calls' axes where both are known and differ."""
    first, second = _axis(site.reference, ours), _axis(site.port, theirs)
    if first is None or second is None or first == second:
        return None
    return Finding(
        "softmax-axis",
        f"the reference's attention probabilities add up to 1 over {_AXES[first]} (dimension {first}), the port's over "
        f"{_AXES[second]} (dimension {second})",
        0.0,
        f"Take the softmax over dimension {first} in {site.port.node.class_name}.",
    )


def _axis(view: View, call: int) -> int | None:
    """The only axis over which the recorded probabilities add up to 1; the keys' for a fused attention."""
    record = view.side.trace.calls[call]
    if record.class_name != "softmax":
        return -1
    returned = next((slot.tensor for slot in record.outputs if slot.tensor is not None), None)
    if returned is None or len(returned.shape) < 3 or not view.side.values.has(returned):
        return None
    values = view.side.values.array(returned)
    entry: Array = np.asarray(values if values.ndim == 3 else values[0], np.float32)
    found = [axis for axis in _AXES if entry.shape[axis] > 1 and _adds_up(entry, axis)]
    return found[0] if len(found) == 1 else None


def _adds_up(values: Array, axis: int) -> bool:
    with np.errstate(all="ignore"):
        sums = values.sum(axis)
        return bool(np.mean(np.abs(sums - 1) < _CLOSE) > _ENOUGH)
