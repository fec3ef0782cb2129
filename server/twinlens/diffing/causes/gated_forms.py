"""Products made otherwise: the activation left out, applied to the product, to both factors, or a factor left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.activation_formulas import ACTIVATIONS
from twinlens.diffing.causes.evidence import residual
from twinlens.diffing.values import Array


@dataclass(frozen=True, slots=True)
class Form:
    """What a tensor is made of two factors, in words, and how far that is from it."""

    words: str
    has_activation: bool
    residual: float


def form_of(target: Array, gate: tuple[str, Array], value: tuple[str, Array] | None, fit: float) -> Form | None:
    """The form that gives `target` from the labelled factors, all of one shape; None where none does within `fit`."""
    with np.errstate(all="ignore"):
        found = [Form(words, has, residual(values, target)) for words, has, values in _forms(gate, value)]
    best = min(found, key=lambda form: form.residual)
    return best if best.residual <= fit else None


def _forms(gate: tuple[str, Array], value: tuple[str, Array] | None) -> Iterator[tuple[str, bool, Array]]:
    g, x = gate
    yield g, False, x
    if value is None:
        return
    v, y = value
    yield v, False, y
    yield f"{g} × {v}", False, x * y
    yield f"{g} + {v}", False, x + y
    for name, function in ACTIVATIONS.items():
        if name == "nothing":
            continue
        once = function(x)
        yield f"{name} of {g} alone", True, once
        yield f"{name} of {v} alone", True, function(y)
        yield f"{name} of the product {g} × {v}", True, function(x * y)
        yield f"{name} of the sum {g} + {v}", True, function(x + y)
        yield f"{name} of {g}, times {name} of {v}", True, once * function(y)
        yield f"{name} of {g}, plus {v}", True, once + y
