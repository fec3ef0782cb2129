"""Candidate causes, one file a family; each is tried on the recorded tensors and named only on a hit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from twinlens.diffing.causes import (
    activations,
    attention,
    calls,
    convolution,
    finite,
    inputs,
    modes,
    norms,
    order,
    pooling,
    positions,
    projections,
    rotary,
    routing,
    sums,
)
from twinlens.diffing.causes.evidence import Finding, Site


@dataclass(frozen=True, slots=True)
class Family:
    """`name` is the words for what was tried in vain when `find` yields nothing."""

    name: str
    find: Callable[[Site], Iterator[Finding]]
    is_of_frame: bool = False
    """Whether it judges the code around a tensor, whichever of its tensors is asked about."""


FAMILIES = (
    Family("NaN and Inf in inputs and weights", finite.find_held),
    Family("model inputs", inputs.find),
    Family("training mode", modes.find),
    Family("modules not called, or in another's place", calls.find),
    Family("norms", norms.find),
    Family("weights and biases", projections.find),
    Family("lookups and positions", positions.find),
    Family("rotary tables", rotary.find),
    Family("attention", attention.find),
    Family("convolutions and padding", convolution.find),
    Family("expert routing", routing.find),
    Family("pooling", pooling.find),
    Family("activations and gates", activations.find),
    Family("order of tokens", order.find),
    Family("sums, scales and caps", sums.find),
    Family("NaN and Inf made of numbers", finite.find_made),
)
"""In the order in which they are tried."""
