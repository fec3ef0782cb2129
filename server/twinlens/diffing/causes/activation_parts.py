"""The tensors that may be factors of a gated product: those of its shape, and halves of those twice as wide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from twinlens.diffing.causes.activation_formulas import ACTIVATIONS
from twinlens.diffing.causes.evidence import Identity, Site, View
from twinlens.diffing.values import Array

SMALL_SAMPLE = 2_000
_MOST_SEEN = 8


@dataclass(frozen=True)
class Part:
    """A tensor that may be a factor, of the target's shape."""

    label: str
    identity: Identity
    values: Array

    @cached_property
    def few(self) -> Array:
        """A small sample."""
        return sampled_to(self.values, SMALL_SAMPLE)

    @cached_property
    def activated(self) -> Array:
        """(activations, sample): what each of `ACTIVATIONS` makes of it."""
        with np.errstate(all="ignore"):
            return np.stack([function(self.few) for function in ACTIVATIONS.values()])


def parts_of(view: View, shape: tuple[int, ...], site: Site) -> Iterator[Part]:
    """Tensors of `shape` that the code could see, and the halves of those that are twice as wide."""
    width, size = shape[-1], math.prod(shape)
    for item in view.seen[-_MOST_SEEN:]:
        if item.tensor.shape[-1:] == (width,) and math.prod(item.tensor.shape) == size:
            yield Part(item.label, site.identity(view, item.tensor), view.array(item.tensor).reshape(shape))
        elif item.tensor.shape[-1:] == (2 * width,) and math.prod(item.tensor.shape) == 2 * size:
            wide = view.array(item.tensor)
            for part, label, values in (
                ("first", "the first half", wide[..., :width]),
                ("second", "the second half", wide[..., width:]),
                ("even", "the even columns", wide[..., ::2]),
                ("odd", "the odd columns", wide[..., 1::2]),
            ):
                yield Part(f"{label} of {item.label}", site.identity(view, item.tensor, part), values.reshape(shape))


def sampled_to(values: Array, sample: int) -> Array:
    flat = values.reshape(-1)
    return np.asarray(flat[:: max(1, flat.size // sample)], np.float64)
