"""Norms of another formula: what they divide by, whether they take the mean off, whether they use weight and bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, residual
from twinlens.diffing.causes.norm_fit import KNOWN_EPS, Norm, own_eps
from twinlens.diffing.values import Array

_TOLD_APART = 3.0
"""How many times worse than a side's own form the other's must describe it."""


def _mean_square(x: Array) -> Array:
    return np.mean(x * x, 1, keepdims=True)


DIVISORS: Mapping[str, Callable[[Array, float], Array]] = {
    "the root of the mean of squares": lambda x, eps: np.sqrt(_mean_square(x) + eps),
    "the root of the mean of squares, eps added after the root": lambda x, eps: np.sqrt(_mean_square(x)) + eps,
    "the root of the sum of squares": lambda x, eps: np.sqrt(x.shape[1] * _mean_square(x) + eps),
    "the root of the sum of squares over the width less 1": lambda x, eps: np.sqrt(
        _mean_square(x) * x.shape[1] / (x.shape[1] - 1) + eps
    ),
    "the root of the sum of squares over the width less 1, eps added after the root": lambda x, eps: (
        np.sqrt(_mean_square(x) * x.shape[1] / (x.shape[1] - 1)) + eps
    ),
    "the mean of squares, without a root": lambda x, eps: _mean_square(x) + eps,
    "the mean of absolute values": lambda x, eps: np.mean(np.abs(x), 1, keepdims=True) + eps,
    "the largest absolute value": lambda x, eps: np.max(np.abs(x), 1, keepdims=True) + eps,
    "nothing": lambda x, _eps: np.ones((len(x), 1)),
}
"""Of tokens (n, width), the mean taken off or not, and eps: what each token is divided by, (n, 1)."""


@dataclass(frozen=True, slots=True)
class NormForm:
    is_centred: bool
    divisor: str
    gain: str
    """`its weight`, `1 + its weight` or `nothing`."""
    adds_bias: bool


@dataclass(frozen=True, slots=True)
class _Fits:
    """By form: the residual."""

    residuals: Mapping[NormForm, float]

    @property
    def best(self) -> NormForm:
        """The first of those that describe the side: the usual ones come first."""
        return next(form for form in self.residuals if self.holds(form))

    def holds(self, form: NormForm) -> bool:
        """Whether a form describes the side nearly as well as any does."""
        least = min(self.residuals.values())
        return self.residuals.get(form, np.inf) <= _TOLD_APART * max(least, 1e-7)


def compare_forms(site: Site, ours: Norm, theirs: Norm) -> Iterator[Finding]:
    """What differs in the formula; nothing where a side has none of those known, or both have one."""
    fits = _fitted(ours, site.reference), _fitted(theirs, site.port)
    first, second = fits[0].best, fits[1].best
    left = max(fits[0].residuals[first], fits[1].residuals[second])
    if left > site.fit or first == second or fits[0].holds(second) or fits[1].holds(first):
        return
    usual = list(DIVISORS)[:2]
    is_of_eps = {first.divisor, second.divisor} == set(usual) and replace(second, divisor=first.divisor) == first
    yield Finding(
        "eps" if is_of_eps else "norm-formula",
        "; ".join(_said(first, second)),
        left,
        f"Norm as the reference does in {site.port.node.class_name}: "
        f"{'take the mean off, ' if first.is_centred else ''}divide by {first.divisor}, multiply by {first.gain}"
        f"{', add the bias' if first.adds_bias else ''}.",
    )


def _said(first: NormForm, second: NormForm) -> Iterator[str]:
    if first.is_centred != second.is_centred:
        names = ["a LayerNorm (it takes the mean off)", "an RMSNorm (it does not take the mean off)"]
        yield "the reference is {}, the port {}".format(*(names if first.is_centred else names[::-1]))
    if first.divisor != second.divisor:
        yield f"the reference divides by {first.divisor}, the port by {second.divisor}"
    if first.gain != second.gain:
        yield f"the reference multiplies by {first.gain}, the port by {second.gain}"
    if first.adds_bias != second.adds_bias:
        yield "the {} adds its bias, the {} does not".format(
            *(("reference", "port") if first.adds_bias else ("port", "reference"))
        )


def _fitted(norm: Norm, view: View) -> _Fits:
    own = own_eps(view)
    all_eps = (own,) if own is not None else KNOWN_EPS
    found: dict[NormForm, float] = {}
    for is_centred in (False, True):
        x = norm.x - norm.x.mean(1, keepdims=True) if is_centred else norm.x
        for divisor, function in DIVISORS.items():
            with np.errstate(all="ignore"):
                ways = [x / function(x, eps) for eps in (all_eps if divisor != "nothing" else all_eps[:1])]
            for gain, factor in _gains(norm):
                for adds_bias in (True, False) if norm.bias is not None else (False,):
                    shift = norm.bias if adds_bias and norm.bias is not None else 0.0
                    error = min(residual(normed * factor + shift, norm.y) for normed in ways)
                    found[NormForm(is_centred, divisor, gain, adds_bias)] = error
    return _Fits(found)


def _gains(norm: Norm) -> Iterator[tuple[str, Array]]:
    yield "nothing", np.ones(norm.x.shape[1])
    if norm.weight is not None:
        yield "its weight", norm.weight
        yield "1 + its weight", 1 + norm.weight
