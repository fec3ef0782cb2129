"""A norm's numbers, read off what it was given and what it returned.

y = (x - m) / sqrt(v + eps) * (offset + w) + b with m the mean of x (0 for RMSNorm) and v the mean of (x - m)² over the
last dimension. The factor of each token is read off x and y, and eps from it: 1 / s² - v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.evidence import View, is_floating, parameters_of, residual, tokens
from twinlens.diffing.values import Array

KNOWN_EPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-12, 5e-6, 0.0)
CERTAIN = 8.0
"""Standard errors between two estimates of eps."""


@dataclass(frozen=True, slots=True)
class NormFit:
    """How one side norms. `eps_error` is eps' standard error."""

    centred: bool
    offset: float | None
    """What is added to the weight: 0 or 1; None where the weight does not tell them apart."""
    eps: float
    eps_error: float
    residual: float

    @property
    def name(self) -> str:
        return "LayerNorm" if self.centred else "RMSNorm"


@dataclass(frozen=True, slots=True)
class Norm:
    """Recorded tensors of one side: tokens (n, width), and the weight and bias of its width."""

    x: Array
    y: Array
    weight: Array | None
    bias: Array | None


def norm_of(view: View) -> Norm | None:
    if not view.is_leaf or view.node.is_function:
        return None
    inputs = [slot.tensor for slot in view.call.inputs if slot.tensor is not None and is_floating(slot.tensor)]
    if not inputs or inputs[0].shape != view.tensor.shape or len(view.tensor.shape) < 2:
        return None
    if not view.side.values.has(inputs[0]) or not view.side.values.has(view.tensor):
        return None
    width = view.tensor.shape[-1]
    own = {name: value for name, value in parameters_of(view).items() if value.shape == (width,)}
    others = [item for item in view.node.parameters if len(item.tensor.shape) > 1]
    if others or (not own and view.node.kind != "norm"):
        return None
    bias = next((value for name, value in own.items() if "bias" in name or name in ("b", "beta", "shift")), None)
    weight = next((value for value in own.values() if value is not bias), None)
    return Norm(tokens(view.array(inputs[0])), tokens(view.target()), _wide(weight), _wide(bias))


def _wide(values: Array | None) -> Array | None:
    return None if values is None else np.asarray(values, np.float64)


def fit_norm(norm: Norm, fit: float) -> NormFit | None:
    """The kind of norm that explains `norm.y` best; None where none does to within `fit`."""
    best: NormFit | None = None
    for centred in (False, True):
        for offset in (0.0, 1.0) if norm.weight is not None else (0.0,):
            found = _fitted(norm, centred, offset)
            if found is not None and (best is None or found.residual < best.residual):
                best = found
    return best if best is not None and best.residual <= fit else None


def _fitted(norm: Norm, centred: bool, offset: float) -> NormFit | None:
    gain = np.ones(norm.x.shape[1]) if norm.weight is None else offset + norm.weight
    x = norm.x - norm.x.mean(1, keepdims=True) if centred else norm.x
    y = norm.y if norm.bias is None else norm.y - norm.bias
    shape = x * gain
    size = np.sum(shape * shape, 1)
    keep = (size > 0) & np.isfinite(y).all(1)
    if keep.sum() < 2 or not np.any(gain):
        return None
    x, y, shape, size = x[keep], y[keep], shape[keep], size[keep]
    factor = np.sum(y * shape, 1) / size
    if np.any(factor <= 0):
        return None
    variance = np.mean(x * x, 1)
    each = 1 / factor**2 - variance
    weights = 1 / (variance + np.abs(each)) ** 2
    eps = float(np.average(each, weights=weights))
    spread = math.sqrt(float(np.average((each - eps) ** 2, weights=weights)) / len(each))
    prediction = shape / np.sqrt(variance + max(eps, 0.0))[:, None]
    plain = norm.weight is None or np.ptp(norm.weight) < 1e-3
    return NormFit(centred, None if plain else offset, eps, spread, residual(prediction, y))


def eps_differs(fits: tuple[NormFit, NormFit]) -> bool:
    gap = abs(fits[0].eps - fits[1].eps)
    error = math.hypot(fits[0].eps_error, fits[1].eps_error)
    return gap > CERTAIN * error and gap > 0.3 * max(abs(fits[0].eps), abs(fits[1].eps))


def named_eps(fit: NormFit, view: View) -> float:
    """The estimate, as the number that the module itself has or that people write, where one lies near it."""
    own = own_eps(view)
    known = (*((own,) if own is not None else ()), *KNOWN_EPS)
    near = [value for value in known if abs(value - fit.eps) <= max(6 * fit.eps_error, 0.1 * value)]
    if own is not None and own in near:
        return own
    return min(near, key=lambda value: abs(value - fit.eps)) if near else fit.eps


def own_eps(view: View) -> float | None:
    return view.number("eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps", "rms_norm_eps")
