"""What other tools' default rules say of a pair of tensors, from their public documentation; for `faults.py`.

A rule takes the recorded outputs of a call on both sides (and its inputs, where it looks at pairs) and says whether the
call fails. Its origin is the first failing module that calls no other, in the order of execution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from twinlens.diffing.values import Array

Rule = Callable[["Outputs"], bool]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Flat float64 values of the first output and the first input of a call, reference then port."""

    reference: Array
    port: Array
    reference_in: Array | None
    port_in: Array | None


def sglang(pair: Outputs) -> bool:
    """1 - 2<x, y> / (|x|² + |y|²) above 1e-3."""
    x, y = pair.reference, pair.port
    return not 1 - 2 * float(x @ y) / max(float(x @ x + y @ y), 1e-300) <= 1e-3


def polygraphy(pair: Outputs) -> bool:
    """An element with absolute and relative error above 1e-5."""
    gap = np.abs(pair.port - pair.reference)
    return bool(((gap > 1e-5) & (gap > 1e-5 * np.maximum(np.abs(pair.reference), 2.2e-16))).any()) or _nan(pair)


def msprobe_statistics(pair: Outputs) -> bool:
    """Norms that agree to 10 % going in and are more than 50 % apart coming out."""
    return _norm_error(pair.reference_in, pair.port_in) < 0.1 and _norm_error(pair.reference, pair.port) > 0.5


def msprobe_tensors(pair: Outputs) -> bool:
    """More than 90 % of elements within 0.1 % going in, fewer than 10 % coming out."""
    return _close_share(pair.reference_in, pair.port_in) > 0.9 and _close_share(pair.reference, pair.port) < 0.1


def msprobe_cosine(pair: Outputs) -> bool:
    """Cosine below 0.99."""
    x, y = pair.reference, pair.port
    return not float(x @ y) / max(float(np.linalg.norm(x) * np.linalg.norm(y)), 1e-300) >= 0.99


def neuron(pair: Outputs) -> bool:
    """Largest error above 1 % of the reference's largest value."""
    return not float(np.abs(pair.port - pair.reference).max()) <= 0.01 * float(np.abs(pair.reference).max())


def allclose(pair: Outputs) -> bool:
    """numpy's `allclose` with rtol and atol 1e-3."""
    return not np.allclose(pair.port, pair.reference, rtol=1e-3, atol=1e-3)


RULES: Mapping[str, Rule] = {
    "sglang 1e-3": sglang,
    "Polygraphy 1e-5": polygraphy,
    "msprobe norms": msprobe_statistics,
    "msprobe tensors": msprobe_tensors,
    "msprobe cosine": msprobe_cosine,
    "Neuron 1 %": neuron,
    "allclose 1e-3": allclose,
}


def _nan(pair: Outputs) -> bool:
    return bool(np.isnan(pair.port).any() != np.isnan(pair.reference).any())


def _norm_error(reference: Array | None, port: Array | None) -> float:
    if reference is None or port is None:
        return 0.0
    size = float(np.linalg.norm(reference))
    return abs(float(np.linalg.norm(port)) - size) / max(size, 1e-300)


def _close_share(reference: Array | None, port: Array | None) -> float:
    if reference is None or port is None:
        return 1.0
    return float(np.mean(np.abs(port - reference) <= 1e-3 * np.abs(reference)))
