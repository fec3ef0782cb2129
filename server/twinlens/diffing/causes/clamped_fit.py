"""Gated products with limits: activation(clip(gate)) * (clip(value) + shift), clipped as a whole or not.

GPT-OSS and models like it clip both factors and add 1 to the second. The limits are read off the recorded tensors: a
factor that is clipped takes one value at several places, and follows its source everywhere below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from twinlens.diffing.causes.activation_formulas import ACTIVATIONS
from twinlens.diffing.causes.evidence import nice, residual
from twinlens.diffing.values import Array

_SHIFTS = (0.0, 1.0)
_FEWEST_CLIPPED = 3
"""Places that take one extreme value before it counts as a limit."""
_MOSTLY = 0.6
"""Share of the small numbers that a formula must give before limits are looked for."""
_HALVINGS = 60
_SMALL_NUMBERS = 64
"""How many of the small numbers are looked at."""


@dataclass(frozen=True, slots=True)
class Limits:
    low: float = -math.inf
    high: float = math.inf

    def clip(self, x: Array) -> Array:
        return np.clip(x, self.low, self.high)

    def said(self, what: str) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return what
        if math.isinf(self.low):
            return f"{what} clipped above {nice(self.high)}"
        if math.isinf(self.high):
            return f"{what} clipped below {nice(self.low)}"
        if abs(self.low + self.high) <= 1e-3 * self.high:
            return f"{what} clipped at ±{nice(self.high)}"
        return f"{what} clipped to {nice(self.low)} … {nice(self.high)}"

    def rounded(self, digits: int, tolerance: float) -> Limits:
        """Each to as many digits, where that moves it by no more than a share of `tolerance`."""
        near = [(end, float(f"{end:.{digits}g}")) for end in (self.low, self.high)]
        return Limits(*(short if abs(short - end) <= tolerance * abs(end) else end for end, short in near))


@dataclass(frozen=True, slots=True)
class ClampedProduct:
    activation: str
    gate: Limits
    value: Limits
    shift: float
    whole: Limits
    residual: float

    def of(self, gate: Array, value: Array) -> Array:
        made = ACTIVATIONS[self.activation](self.gate.clip(gate)) * (self.value.clip(value) + self.shift)
        return self.whole.clip(made)

    def measured(self, target: Array, gate: Array, value: Array) -> ClampedProduct:
        return replace(self, residual=residual(self.of(gate, value), target))

    def said(self, gate: str, value: str) -> str:
        factor = self.value.said(value)
        factor = f"({factor} + {nice(self.shift)})" if self.shift else factor
        made = f"{self.activation} of {self.gate.said(gate)}, times {factor}"
        return made if self.whole == Limits() else f"{made}, {self.whole.said('the product')}"


def clamped_product(target: Array, gate: Array, value: Array, fit: float) -> ClampedProduct | None:
    """The product that gives `target` from two factors, all (n,), to within `fit`; None where none does."""
    if not np.isfinite(target).all():
        return None
    whole = _limits_of(target, target, fit)
    is_inner = (np.abs(gate) <= np.median(np.abs(gate))) & (np.abs(value) <= np.median(np.abs(value)))
    is_inner &= (target > whole.low) & (target < whole.high)
    inner = np.flatnonzero(is_inner)[:_SMALL_NUMBERS]
    if len(inner) < 8:
        return None
    best: ClampedProduct | None = None
    for name, function in ACTIVATIONS.items():
        if name == "nothing":
            continue
        for shift in _SHIFTS:
            small = function(gate[inner]) * (value[inner] + shift)
            if np.mean(np.abs(small - target[inner]) <= 4 * fit * np.abs(target[inner]) + 1e-12) < _MOSTLY:
                continue
            found = _with_limits((name, function, shift, Limits()), target, gate, value, fit)
            if found.residual > fit:
                found = _with_limits((name, function, shift, whole), target, gate, value, fit)
            if found.residual <= fit and (best is None or found.residual < best.residual):
                best = found
    return best


def _with_limits(
    form: tuple[str, Callable[[Array], Array], float, Limits], target: Array, gate: Array, value: Array, fit: float
) -> ClampedProduct:
    name, function, shift, whole = form
    is_free = (target > whole.low) & (target < whole.high)
    activated = function(gate)
    is_low_gate = is_free & (np.abs(gate) <= np.median(np.abs(gate))) & (np.abs(activated) > 1e-3)
    values = _limits_of(target[is_low_gate] / activated[is_low_gate] - shift, value[is_low_gate], fit)
    factor = values.clip(value) + shift
    is_seen = is_free & (np.abs(factor) > 1e-3)
    gates = _gate_limits(function, target[is_seen] / factor[is_seen], gate[is_seen], fit)
    found = ClampedProduct(name, gates, values, shift, whole, math.inf).measured(target, gate, value)
    return _rounded(found, target, gate, value, fit)


def _rounded(form: ClampedProduct, target: Array, gate: Array, value: Array, fit: float) -> ClampedProduct:
    """With limits as a person writes them, where these fit as well: low precision leaves them a little off."""
    for digits in (3, 2, 1):
        near = replace(
            form,
            gate=form.gate.rounded(digits, 4 * fit),
            value=form.value.rounded(digits, 4 * fit),
        )
        near = near.measured(target, gate, value)
        if near.residual <= max(1.05 * form.residual, fit / 100):
            form = near
    return form


def _limits_of(made: Array, source: Array, fit: float) -> Limits:
    """The extremes of `made` that it takes at several places, beyond which `source` goes."""
    if len(made) < 2 * _FEWEST_CLIPPED:
        return Limits()
    ends = []
    for sign in (-1.0, 1.0):
        end = float(np.max(sign * made))
        at_end = np.abs(sign * made - end) <= 4 * fit * abs(end)
        is_limit = end > 0 and at_end.sum() >= _FEWEST_CLIPPED and np.all(sign * source[at_end] >= end * (1 - 8 * fit))
        is_limit = is_limit and (made is not source or np.sum(made == sign * end) >= _FEWEST_CLIPPED)
        clipped = at_end & (sign * source > end)
        middle = float(np.median(made[clipped])) if clipped.any() else sign * end
        ends.append(middle if is_limit else sign * math.inf)
    return Limits(*ends)


def _gate_limits(function: Callable[[Array], Array], made: Array, gate: Array, fit: float) -> Limits:
    """Where `made` stops following `function(gate)`, upwards and downwards."""
    usual = float(np.median(np.abs(made))) if made.size else 0.0
    follows = np.abs(function(gate) - made) <= 8 * fit * (np.abs(made) + usual)
    ends = []
    for sign in (-1.0, 1.0):
        beyond = sign * gate > max(float(np.max(sign * gate[follows], initial=0.0)), 0.0)
        if beyond.sum() < _FEWEST_CLIPPED:
            ends.append(sign * math.inf)
            continue
        inside = sign * float(np.max(sign * gate[follows], initial=0.0))
        outside = sign * float(np.min(sign * gate[beyond]))
        ends.append(_solved(function, float(np.median(made[beyond])), inside * (1 - 16 * fit), outside))
    return Limits(*ends)


def _solved(function: Callable[[Array], Array], wanted: float, a: float, b: float) -> float:
    """x between `a` and `b` with function(x) = `wanted`, by halving."""

    def gap(x: float) -> float:
        return float(function(np.asarray(x, np.float64))) - wanted

    start = gap(a)
    for _step in range(_HALVINGS):
        middle = (a + b) / 2
        if (gap(middle) > 0) == (start > 0):
            a = middle
        else:
            b = middle
    return (a + b) / 2
