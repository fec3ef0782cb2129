"""Functions that numpy lacks, so that a diff needs numpy alone."""

from __future__ import annotations

import math

import numpy as np

from twinlens.diffing.values import Array

_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: Array) -> Array:
    return _erf(x) if x.size else x


def expit(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    half = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + half), half / (1 + half))


def softmax(x: Array, axis: int) -> Array:
    exponents = np.exp(x - x.max(axis, keepdims=True))
    return exponents / exponents.sum(axis, keepdims=True)
