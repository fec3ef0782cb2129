"""Norms: a weight that is `1 + w`, another eps, another order of casts, mean taken off or not.

A norm is y = (x - m) / sqrt(v + eps) * (offset + w) + b with m the mean of x (0 for RMSNorm) and v the mean of
(x - m)² over the last dimension. Its factor of each token is read off x and y, and eps from it: 1 / s² - v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from twinlens.diffing.causes.evidence import (
    Finding,
    Site,
    View,
    is_floating,
    nice,
    parameters_of,
    residual,
    short,
    tokens,
)
from twinlens.diffing.columns import rounded_to
from twinlens.diffing.values import Array

_LOW_PRECISION = ("bfloat16", "float16")
_KNOWN_EPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-12, 5e-6, 0.0)
_ENOUGH_MATCHES = 0.985
_CERTAIN = 8.0
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
class _Norm:
    """Recorded tensors of one side: tokens (n, width), and the weight and bias of its width."""

    x: Array
    y: Array
    weight: Array | None
    bias: Array | None


def find(site: Site) -> Iterator[Finding]:
    if all("BatchNorm" in view.node.class_name for view in site.views):
        yield from _batch_norm_eps(site)
        return
    norms = [_norm_of(view) for view in site.views]
    if norms[0] is None or norms[1] is None:
        return
    reference, port = norms[0], norms[1]
    fits = fit_norm(reference, site.fit), fit_norm(port, site.fit)
    idle = [residual(norm.y, norm.x) <= site.fit for norm in (reference, port)]
    if idle[0] != idle[1] and fits[1 if idle[0] else 0] is not None:
        yield _idle(site, is_port=idle[1])
        return
    if fits[0] is None or fits[1] is None:
        return
    yield from _differences(site, (reference, port), (fits[0], fits[1]))


def _idle(site: Site, *, is_port: bool) -> Finding:
    """A norm that hands on what it is given."""
    who = "port" if is_port else "reference"
    words = {view.side.canonical[view.node.path].rpartition(".")[2] for view in site.views}
    return Finding(
        "qk-norm" if words & {"qnorm", "knorm"} else "unknown",
        f"the {who}'s {short(site.port.call.path)} returns what it is given, the other side's norms it",
        0.0,
        _change_of_idle(site, is_port=is_port),
    )


def _change_of_idle(site: Site, *, is_port: bool) -> str:
    ours, theirs = site.reference.node.class_name, site.port.node.class_name
    if ours != theirs:
        return f"Put the reference's {ours} in place of {theirs}."
    return f"{'Apply' if is_port else 'Leave out'} the norm in {short(site.port.call.path)}."


def _batch_norm_eps(site: Site) -> Iterator[Finding]:
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
            for known in (_own_eps(view), *_KNOWN_EPS)
            if known is not None and abs(known - value) <= 0.1 * known + 1e-7
        ]
        eps.append(near[0] if near else value)
    if abs(eps[0] - eps[1]) > max(0.3 * max(map(abs, eps)), _CERTAIN * error):
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


def _differences(site: Site, norms: tuple[_Norm, _Norm], fits: tuple[NormFit, NormFit]) -> Iterator[Finding]:
    (reference, port), (ours, theirs) = norms, fits
    left = max(ours.residual, theirs.residual)
    if ours.centred != theirs.centred:
        yield Finding(
            "unknown",
            f"the reference is a {ours.name}, the port a {theirs.name}",
            left,
            "Take the mean off as the reference does." if ours.centred else "Do not take the mean off.",
        )
        return
    if None not in (ours.offset, theirs.offset) and ours.offset != theirs.offset:
        said = "1 + weight", "weight"
        first, second = said if ours.offset == 1 else said[::-1]
        yield Finding(
            "rmsnorm-offset",
            f"the reference multiplies by {first}, the port by {second}",
            left,
            f"Multiply by `{first}` in {site.port.node.class_name}, or {'add 1 to' if ours.offset else 'take 1 off'} "
            "the weight in the conversion.",
        )
        return
    shift = _constant_shift(reference.weight, port.weight)
    if shift:
        yield Finding(
            "rmsnorm-offset",
            f"the port's weight is the reference's {'+' if shift > 0 else '-'} {nice(abs(shift))}, and both multiply "
            "by it alike",
            left,
            "Convert the weight as it is.",
        )
        return
    yield from _not_loaded(site, reference, port, left)
    if _eps_differs(fits):
        first, second = (_named_eps(fit, view) for fit, view in zip(fits, site.views, strict=True))
        if first != second:
            yield Finding(
                "eps",
                f"{ours.name} eps: the port behaves as {nice(second)}, the reference as {nice(first)}",
                left,
                f"Give {site.port.node.class_name} eps={nice(first)}.",
            )
    yield from _cast_order(site, norms, fits)


def _not_loaded(site: Site, ours: _Norm, theirs: _Norm, left: float) -> Iterator[Finding]:
    """A weight or bias that differs, with the same formula on both sides."""
    for name, own, other, initial in (
        ("weight", ours.weight, theirs.weight, 1.0),
        ("bias", ours.bias, theirs.bias, 0.0),
    ):
        if own is None or (other is not None and residual(other, own) <= 1e-2):
            continue
        state = (
            "has none"
            if other is None
            else f"holds {nice(initial)} throughout"
            if (other == initial).all()
            else "differs"
        )
        full = f"{short(site.port.call.path)}.{name}"
        yield Finding(
            "missing-bias" if state != "differs" else "unknown",
            f"the reference's {name} is not the port's, which {state}: it was not loaded",
            left,
            f"Look for the key of {full} among the missing keys of the load.",
        )


def _norm_of(view: View) -> _Norm | None:
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
    return _Norm(tokens(view.array(inputs[0])), tokens(view.target()), _wide(weight), _wide(bias))


def _wide(values: Array | None) -> Array | None:
    return None if values is None else np.asarray(values, np.float64)


def fit_norm(norm: _Norm, fit: float) -> NormFit | None:
    """The kind of norm that explains `norm.y` best; None where none does to within `fit`."""
    best: NormFit | None = None
    for centred in (False, True):
        for offset in (0.0, 1.0) if norm.weight is not None else (0.0,):
            found = _fitted(norm, centred, offset)
            if found is not None and (best is None or found.residual < best.residual):
                best = found
    return best if best is not None and best.residual <= fit else None


def _fitted(norm: _Norm, centred: bool, offset: float) -> NormFit | None:
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


def _constant_shift(reference: Array | None, port: Array | None) -> float:
    """`port - reference` where that is 1 or -1 throughout."""
    if reference is None or port is None or reference.shape != port.shape:
        return 0.0
    gap = port - reference
    for shift in (1.0, -1.0):
        if np.max(np.abs(gap - shift)) < 1e-2:
            return shift
    return 0.0


def _eps_differs(fits: tuple[NormFit, NormFit]) -> bool:
    gap = abs(fits[0].eps - fits[1].eps)
    error = math.hypot(fits[0].eps_error, fits[1].eps_error)
    return gap > _CERTAIN * error and gap > 0.3 * max(abs(fits[0].eps), abs(fits[1].eps))


def _named_eps(fit: NormFit, view: View) -> float:
    """The estimate, as the number that the module itself has or that people write, where one lies near it."""
    own = _own_eps(view)
    known = (*((own,) if own is not None else ()), *_KNOWN_EPS)
    near = [value for value in known if abs(value - fit.eps) <= max(6 * fit.eps_error, 0.1 * value)]
    if own is not None and own in near:
        return own
    return min(near, key=lambda value: abs(value - fit.eps)) if near else fit.eps


def _own_eps(view: View) -> float | None:
    return view.number("eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps", "rms_norm_eps")


def _cast_order(site: Site, norms: tuple[_Norm, _Norm], fits: tuple[NormFit, NormFit]) -> Iterator[Finding]:
    dtype = site.port.tensor.dtype
    if dtype not in _LOW_PRECISION or site.reference.tensor.dtype != dtype:
        return
    shares = [
        _best_shares(norm, fit, dtype, _own_eps(view)) for norm, fit, view in zip(norms, fits, site.views, strict=True)
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


def _best_shares(norm: _Norm, fit: NormFit, dtype: str, own: float | None) -> dict[str, float]:
    """By order of operations, with the eps that fits best: in low precision the fit alone leaves it open."""
    tried = [own] if own is not None else [eps for eps in _KNOWN_EPS if abs(eps - fit.eps) <= 20 * fit.eps_error + 1e-9]
    shares = [_order_shares(norm, replace(fit, eps=eps), dtype) for eps in (tried or [fit.eps])]
    return max(shares, key=lambda share: max(share.values()))


def _order_shares(norm: _Norm, fit: NormFit, dtype: str) -> dict[str, float]:
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
