"""Soft-caps: c tanh(x / c) on one side, or with two values of c."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.evidence import MOST_SEEN, Finding, Site, View, nice, residual, sampled
from twinlens.diffing.values import Array

_CAP_STEPS = 60


def find_cap(site: Site) -> Iterator[Finding]:
    """c tanh(x / c) of a tensor that the code could see, on one side or with two values of c."""
    caps = [cap_of(view) for view in site.views]
    if caps[0] is None or caps[1] is None or caps[0] == caps[1]:
        return
    (ours, our_left), (theirs, their_left) = caps[0], caps[1]
    if ours == theirs or abs(ours - theirs) <= 1e-2 * min(ours, theirs):
        return
    if max(our_left, their_left) > site.fit:
        return
    yield soft_cap_finding(site, "its values", ours, theirs, max(our_left, their_left))


def soft_cap_finding(site: Site, what: str, ours: float, theirs: float, left: float) -> Finding:
    said = ["leaves them as they are" if math.isinf(cap) else f"caps {what} at {nice(cap)}" for cap in (ours, theirs)]
    said[0] = said[0].replace("leaves them", f"leaves {what}")
    cap = "Do not cap" if math.isinf(ours) else f"Apply {nice(ours)} × tanh(x / {nice(ours)}) to"
    return Finding(
        "soft-cap",
        f"the reference {said[0]}, the port {said[1]}",
        left,
        f"{cap} {what} in {site.port.node.class_name}.",
    )


def cap_of(view: View) -> tuple[float, float] | None:
    """(c, residual) of the target as c tanh(x / c) of something seen; c is `inf` where it is x itself."""
    target = sampled(view.target())
    best: tuple[float, float] | None = None
    for item in view.seen[-MOST_SEEN:]:
        if math.prod(item.tensor.shape) != view.target().size:
            continue
        source = sampled(view.array(item.tensor))
        found = fitted_cap(source, target)
        if found is not None and (best is None or found[1] < best[1]):
            best = found
    return best


def fitted_cap(source: Array, target: Array) -> tuple[float, float] | None:
    """(c, residual) of target = c tanh(source / c); None where no c brings it below 1 %."""
    if residual(source, target) < 1e-6:
        return math.inf, residual(source, target)
    top = float(np.max(np.abs(target)))
    if top == 0 or float(np.max(np.abs(source))) < top * (1 - 1e-6):
        return None

    def left(cap: float) -> float:
        return residual(cap * np.tanh(source / cap), target)

    low, high = math.log(top * (1 + 1e-6)), math.log(top * 1e3)
    steps = np.linspace(low, high, _CAP_STEPS)
    place = int(np.argmin([left(math.exp(step)) for step in steps]))
    a, b = steps[max(place - 1, 0)], steps[min(place + 1, len(steps) - 1)]
    for _step in range(_CAP_STEPS):  # golden section
        c, d = b - 0.618 * (b - a), a + 0.618 * (b - a)
        a, b = (a, d) if left(math.exp(c)) < left(math.exp(d)) else (c, b)
    cap = math.exp((a + b) / 2)
    found = left(cap)
    return (cap, found) if found < 1e-2 else None
