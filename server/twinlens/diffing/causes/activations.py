"""Activations: which function of x alone a module or a gated product applies, and to which of two halves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Identity, Site, View, residual
from twinlens.diffing.causes.formulas import erf, expit
from twinlens.diffing.columns import rounded_to
from twinlens.diffing.values import Array

_LOW_PRECISION = ("bfloat16", "float16")
_SMALL_SAMPLE = 2_000
_LARGE_SAMPLE = 100_000
_MOST_SEEN = 8
_MOST_MISSES = 0.015
"""Share of elements that a formula may not give bit for bit, and by how much another must be worse."""
_TOLD_APART = 3.0
"""How many times better than the other side's function a function must describe a side."""


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "GELU (erf)": _gelu,
    "GELU (tanh)": _gelu_tanh,
    "quick GELU": lambda x: x * expit(1.702 * x),
    "SiLU": lambda x: x * expit(x),
    "ReLU": lambda x: np.maximum(x, 0),
    "squared ReLU": lambda x: np.maximum(x, 0) ** 2,
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "leaky ReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "Mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "sigmoid": expit,
    "tanh": np.tanh,
    "hard swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "GELU (erf) clipped at 10": lambda x: np.clip(_gelu(x), -10, 10),
    "nothing": lambda x: x,
}
"""Formulas as in torch and in transformers' `ACT2FN`."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor that may be a factor, of the target's shape."""

    label: str
    identity: Identity
    values: Array


@dataclass(frozen=True, slots=True)
class _Product:
    """activation(gate) * value, or activation(gate) alone."""

    gate: _Part
    value: _Part | None
    error: Mapping[str, float]
    """By activation: the residual."""
    differing: Mapping[str, float]
    """By activation, in low precision: the share of elements that it does not give bit for bit."""

    @property
    def best(self) -> str:
        return min(self.error, key=lambda name: self.error[name])


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable or len(site.port.tensor.shape) < 2:
        return
    sides = [_best_product(view, site) for view in site.views]
    if sides[0] is None or sides[1] is None:
        return
    ours, theirs = sides[0], sides[1]
    if ours.value is not None and theirs.value is not None and ours.gate.identity == theirs.value.identity:
        yield Finding(
            "gate-up-swapped",
            f"the reference applies {ours.best} to {ours.gate.label} and multiplies by {ours.value.label}; the port "
            f"applies {theirs.best} to {theirs.gate.label} and multiplies by {theirs.value.label}",
            max(ours.error[ours.best], theirs.error[theirs.best]),
            f"Exchange the two in {site.port.node.class_name}, or their weights in the conversion.",
        )
        return
    names = _told_apart(ours, theirs)
    if names is not None:
        yield Finding(
            "activation-variant",
            f"the reference applies {names[0]}, the port {names[1]}",
            theirs.error[names[1]],
            f"Use {names[0]} in {site.port.node.class_name}.",
        )


def _told_apart(ours: _Product, theirs: _Product) -> tuple[str, str] | None:
    """The two sides' activations where the recorded values leave no doubt that they are two."""
    first, second = ours.best, theirs.best
    if (
        first != second
        and ours.error[second] > _TOLD_APART * ours.error[first]
        and theirs.error[first] > _TOLD_APART * theirs.error[second]
    ):
        return first, second
    shared = ours.differing.keys() & theirs.differing.keys()
    if not shared:
        return None
    first, second = (min(shared, key=lambda name: side.differing[name]) for side in (ours, theirs))
    if first == second or max(ours.differing[first], theirs.differing[second]) > _MOST_MISSES:
        return None
    is_clear = (
        ours.differing[second] > ours.differing[first] + _MOST_MISSES
        and theirs.differing[first] > theirs.differing[second] + _MOST_MISSES
    )
    return (first, second) if is_clear else None


def _best_product(view: View, site: Site) -> _Product | None:
    target = view.target()
    if not np.isfinite(target).any():
        return None
    parts = list(_parts(view, target.shape, site))
    found = [
        _measured(view, target, gate, value, _SMALL_SAMPLE)
        for gate in parts
        for value in (None, *(other for other in parts if other is not gate))
    ]
    good = [item for item in found if item.error[item.best] <= site.fit and item.best != "nothing"]
    if not good:
        return None
    best = min(good, key=lambda item: item.error[item.best])
    return _measured(view, target, best.gate, best.value, _LARGE_SAMPLE)


def _parts(view: View, shape: tuple[int, ...], site: Site) -> Iterator[_Part]:
    """Tensors of `shape` that the code could see, and the halves of those that are twice as wide."""
    width, size = shape[-1], math.prod(shape)
    for item in view.seen[-_MOST_SEEN:]:
        if item.tensor.shape[-1:] == (width,) and math.prod(item.tensor.shape) == size:
            yield _Part(item.label, site.identity(view, item.tensor), view.array(item.tensor).reshape(shape))
        elif item.tensor.shape[-1:] == (2 * width,) and math.prod(item.tensor.shape) == 2 * size:
            wide = view.array(item.tensor)
            for part, label, values in (
                ("first", "the first half", wide[..., :width]),
                ("second", "the second half", wide[..., width:]),
                ("even", "the even columns", wide[..., ::2]),
                ("odd", "the odd columns", wide[..., 1::2]),
            ):
                yield _Part(f"{label} of {item.label}", site.identity(view, item.tensor, part), values.reshape(shape))


def _measured(view: View, target: Array, gate: _Part, value: _Part | None, sample: int) -> _Product:
    y, x = _sampled(target, sample), _sampled(gate.values, sample)
    times = _sampled(value.values, sample) if value is not None else np.float64(1.0)
    dtype = view.tensor.dtype
    differing: dict[str, float] = {}
    with np.errstate(all="ignore"):
        error = {name: residual(function(x) * times, y) for name, function in ACTIVATIONS.items()}
        if dtype in _LOW_PRECISION and sample == _LARGE_SAMPLE:
            bound = max(3 * min(error.values()), 0.02)
            for name in [name for name, value_error in error.items() if value_error < bound]:
                low = rounded_to(ACTIVATIONS[name](x), dtype)
                differing[name] = float(np.mean(rounded_to(low * times, dtype) != y))
    return _Product(gate, value, error, differing)


def _sampled(values: Array, sample: int) -> Array:
    flat = values.reshape(-1)
    return np.asarray(flat[:: max(1, flat.size // sample)], np.float64)
