"""Norms over recorded statistics: another eps."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, nice, parameters_of
from twinlens.diffing.causes.norm_fit import CERTAIN, KNOWN_EPS, own_eps
from twinlens.diffing.values import Array


def batch_norm_eps(site: Site) -> Iterator[Finding]:
    """Of norms over recorded statistics: y = (x - mean) / sqrt(variance + eps) * weight + bias by channel."""
    found = [_slopes(view) for view in site.views]
    if found[0] is None or found[1] is None:
        return
    eps: list[float] = []
    error = 0.0
    for slopes, view in zip((found[0], found[1]), site.views, strict=True):
        slope, variance, weight = slopes
        each = (weight / slope) ** 2 - variance
        value = float(np.median(each))
        error = max(error, float(np.median(np.abs(each - value))) * 1.5 / math.sqrt(len(each)))
        near = [
            known
            for known in (own_eps(view), *KNOWN_EPS)
            if known is not None and abs(known - value) <= 0.1 * known + 1e-7
        ]
        eps.append(near[0] if near else value)
    if abs(eps[0] - eps[1]) > max(0.3 * max(map(abs, eps)), CERTAIN * error):
        yield Finding(
            "eps",
            f"batch norm eps: the port behaves as {nice(eps[1])}, the reference as {nice(eps[0])}",
            site.fit,
            f"Give {site.port.node.class_name} eps={nice(eps[0])}.",
        )


def _slopes(view: View) -> tuple[Array, Array, Array] | None:
    """(slope, running variance, weight) by channel, the slope of the output over the input."""
    own = parameters_of(view)
    buffers = {item.name.rpartition(".")[2]: item.tensor for item in view.node.parameters if item.is_buffer}
    variance, weight = buffers.get("running_var"), own.get("weight")
    given = next((slot.tensor for slot in view.call.inputs if slot.tensor is not None), None)
    if variance is None or weight is None or given is None or given.shape != view.tensor.shape:
        return None
    if not all(map(view.side.values.has, (variance, given, view.tensor))):
        return None
    x, y = (
        np.moveaxis(np.asarray(view.array(t), np.float64), 1, 0).reshape(len(weight), -1) for t in (given, view.tensor)
    )
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    slope = np.sum(x * y, 1) / np.maximum(np.sum(x * x, 1), 1e-30)
    keep = np.abs(slope) > 1e-6
    return slope[keep], np.asarray(view.array(variance), np.float64)[keep], np.asarray(weight, np.float64)[keep]
