"""Norms in low precision: where the casts stand, told by which order gives the recorded values bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site
from twinlens.diffing.causes.norm_fit import KNOWN_EPS, Norm, NormFit, own_eps
from twinlens.diffing.columns import rounded_to
from twinlens.diffing.values import Array

_LOW_PRECISION = ("bfloat16", "float16")
_ENOUGH_MATCHES = 0.985


def cast_order(site: Site, norms: tuple[Norm, Norm], fits: tuple[NormFit, NormFit]) -> Iterator[Finding]:
    dtype = site.port.tensor.dtype
    if dtype not in _LOW_PRECISION or site.reference.tensor.dtype != dtype:
        return
    shares = [
        _best_shares(norm, fit, dtype, own_eps(view)) for norm, fit, view in zip(norms, fits, site.views, strict=True)
    ]
    first, second = (max(share, key=lambda name: share[name]) for share in shares)
    if first == second or min(shares[0][first], shares[1][second]) < _ENOUGH_MATCHES:
        return
    if shares[0][second] < shares[0][first] - 0.02 and shares[1][first] < shares[1][second] - 0.02:
        yield Finding(
            "cast-order",
            f"the reference {first}, the port {second}: {shares[1][second]:.1%} of the port's values are exactly "
            f"those, {shares[1][first]:.1%} the reference's way",
            1 - shares[1][second],
            f"In {site.port.node.class_name}: {first.replace('casts', 'cast').replace('multiplies', 'multiply')}.",
        )


def _best_shares(norm: Norm, fit: NormFit, dtype: str, own: float | None) -> dict[str, float]:
    """By order of operations, with the eps that fits best: in low precision the fit alone leaves it open."""
    tried = [own] if own is not None else [eps for eps in KNOWN_EPS if abs(eps - fit.eps) <= 20 * fit.eps_error + 1e-9]
    shares = [_order_shares(norm, replace(fit, eps=eps), dtype) for eps in (tried or [fit.eps])]
    return max(shares, key=lambda share: max(share.values()))


def _order_shares(norm: Norm, fit: NormFit, dtype: str) -> dict[str, float]:
    """By order of operations: the share of elements that it gives bit for bit."""
    x = norm.x.astype(np.float32)
    if fit.centred:
        x = x - x.mean(1, keepdims=True, dtype=np.float32)
    variance = np.mean(x * x, 1, keepdims=True, dtype=np.float32)
    normed = x * (1 / np.sqrt(variance + np.float32(max(fit.eps, 0.0)), dtype=np.float32))
    width = x.shape[1]
    gain = np.ones(width) if norm.weight is None else norm.weight + (fit.offset or 0.0)
    bias = np.zeros(width) if norm.bias is None else norm.bias
    gain, bias = gain.astype(np.float32), bias.astype(np.float32)
    low_gain = rounded_to(gain, dtype)
    ways = {
        "multiplies by the weight before it casts": rounded_to(normed * gain + bias, dtype),
        f"casts to {dtype} before it multiplies by the weight": rounded_to(
            rounded_to(rounded_to(normed, dtype) * low_gain, dtype) + bias, dtype
        ),
        f"computes in {dtype} throughout": _in_low_precision(norm.x, fit, low_gain, bias, dtype),
    }
    return {name: float(np.mean(values == norm.y)) for name, values in ways.items()}


def _in_low_precision(x: Array, fit: NormFit, gain: Array, bias: Array, dtype: str) -> Array:
    def low(values: Array) -> Array:
        return rounded_to(np.asarray(values, np.float32), dtype)

    x = low(np.asarray(x))
    if fit.centred:
        x = low(x - low(np.asarray(x.mean(1, keepdims=True))))
    variance = low(np.asarray(np.mean(low(x * x), 1, keepdims=True, dtype=np.float32)))
    factor = low(np.asarray(1 / np.sqrt(low(variance + np.float32(max(fit.eps, 0.0))))))
    return low(low(low(x * factor) * gain) + bias)
