"""Scores as a factor of products, soft-capped at a known value or at one that is solved for."""

from __future__ import annotations

import math

import numpy as np

from twinlens.diffing.causes.evidence import residual
from twinlens.diffing.values import Array

ALIKE = 0.6
"""The residual without a cap above which products are not even roughly the scores: correlation below 0.8."""
_START = (1.001, 1.01, 1.05, 1.2, 1.5, 2.0, 4.0, 12.0, 40.0)
"""Caps to begin with, as multiples of the largest score."""
_STEPS = 12


def scales(products: Array, scores: Array, cap: float) -> tuple[Array, Array]:
    """Of each row of `products` (ways, n): the least-squares factor of `scores` (n,) before the cap, and the relative
    error that is left after it, `inf` where the factor is not positive."""
    nothing = np.zeros(len(products)), np.full(len(products), math.inf)
    size = float(np.linalg.norm(scores))
    if not size or (math.isfinite(cap) and float(np.abs(scores).max()) >= cap):
        return nothing
    wanted = scores if math.isinf(cap) else cap * np.arctanh(scores / cap)
    with np.errstate(all="ignore"):
        factors = (products @ wanted) / np.einsum("wn,wn->w", products, products)
        predicted = factors[:, None] * products
        if math.isfinite(cap):
            predicted = cap * np.tanh(predicted / cap)
        left = np.linalg.norm(predicted - scores, axis=1) / size
    return factors, np.where((factors > 0) & np.isfinite(left), left, math.inf)


def scale_and_cap(products: Array, scores: Array) -> tuple[float, float, float]:
    """(s, c, residual) of scores = c tanh(s products / c), both (n,), by Gauss and Newton's method from the best of
    some caps; the residual is `inf` where that leads nowhere."""
    top = float(np.abs(scores).max())
    starts = [(scales(products[None], scores, top * times), top * times) for times in _START]
    (factors, _left), cap = min(starts, key=lambda start: float(start[0][1][0]))
    scale, bend = float(factors[0]), 1 / cap
    with np.errstate(all="ignore"):
        for _step in range(_STEPS):
            inner = scale * bend * products
            capped = np.tanh(inner)
            slope = 1 - capped * capped
            gradients = np.stack([products * slope, (inner * slope - capped) / bend**2], 1)
            if not np.isfinite(gradients).all():
                return 0.0, math.inf, math.inf
            step = np.linalg.lstsq(gradients, scores - capped / bend, rcond=None)[0]
            scale, bend = scale + float(step[0]), bend + float(step[1])
            if not (scale > 0 and bend > 0):
                return 0.0, math.inf, math.inf
        return scale, 1 / bend, residual(np.tanh(scale * bend * products) / bend, scores)
