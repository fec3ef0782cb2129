"""Model inputs that differ already: another mean, deviation, range, order of channels or resampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, is_floating, nice, residual
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array
from twinlens.tracing.record import Call

_EXACT = 2e-2
"""Of an affine map in low precision: rounding of both sides."""


@dataclass(frozen=True, slots=True)
class _Affine:
    """port channel = factor × reference channel `source` + shift."""

    source: int
    factor: float
    shift: float
    residual: float


def find(site: Site) -> Iterator[Finding]:
    lone = _given_to_one_alone(site)
    if lone is not None:
        yield lone
        return
    if not site.is_comparable or not all(_is_argument_of_root(view) for view in site.views):
        return
    both = conformed(site.reference.target(), site.port.target())
    if both is None:
        return
    name = site.point.place_port
    if not is_floating(site.port.tensor):
        yield _whole(name, *both)
        return
    ours, theirs = (np.asarray(values, np.float64) for values in both)
    axis = _channel_axis(ours)
    bound = max(_EXACT if site.noise.unit > 1e-4 else 1e-4, site.fit)
    affine = _affine_by_channel(ours, theirs, axis, bound)
    yield _named(name, affine) if affine else _resampled(name, ours, theirs, axis)


def _given_to_one_alone(site: Site) -> Finding | None:
    """The tensor is an argument that one side's model was given, and the other's made for itself."""
    given = [
        {slot.tensor.id: slot.place for slot in _root(view).inputs if slot.tensor is not None} for view in site.views
    ]
    places = [own.get(view.tensor.id) for own, view in zip(given, site.views, strict=True)]
    if (places[0] is None) == (places[1] is None):
        return None
    who, other, place = ("reference", "port", places[0]) if places[0] else ("port", "reference", places[1])
    partners = {theirs.tensor: ours.tensor for theirs, ours in site.partners.items()}
    paired = {partners.get(identity) for identity in given[1]} & given[0].keys()
    own = site.reference.tensor.id if places[0] else partners.get(site.port.tensor.id)
    if own in paired or place in given[1 if places[0] else 0].values():
        return None
    return Finding(
        "preprocessing",
        f"only the {who} was given {place}; the {other} made its own, and the two differ",
        0.0,
        f"Give {place} to both models or to neither.",
    )


def _root(view: View) -> Call:
    *_inner, root = (view.frame, *view.side.flow.ancestors(view.frame))
    return view.side.trace.calls[root]


def _is_argument_of_root(view: View) -> bool:
    given = {slot.tensor.id for slot in view.call.inputs if slot.tensor is not None}
    return view.call.parent is None and view.tensor.id in given


def _whole(name: str, ours: Array, theirs: Array) -> Finding:
    differing = np.argwhere(ours != theirs)
    first = tuple(int(place) for place in differing[0])
    return Finding(
        "preprocessing",
        f"{name} differs at {len(differing)} of {ours.size} places, first at {list(first)}: {ours[first]} in the "
        f"reference, {theirs[first]} in the port",
        float(len(differing) / ours.size),
        "Give both models the same inputs, then look at the tokenizer or processor.",
    )


def _channel_axis(values: Array) -> int | None:
    """Of images (…, 3, height, width) or (…, height, width, 3)."""
    for axis in (1, values.ndim - 1, 0, values.ndim - 3):
        if 0 <= axis < values.ndim and values.ndim >= 3 and values.shape[axis] in (1, 3, 4):
            return axis
    return None


def _affine_by_channel(ours: Array, theirs: Array, axis: int | None, bound: float) -> list[_Affine]:
    """Each of the port's channels as one of the reference's; empty where that does not hold for all."""
    first = [ours.reshape(-1)] if axis is None else [channel.reshape(-1) for channel in np.moveaxis(ours, axis, 0)]
    second = [theirs.reshape(-1)] if axis is None else [channel.reshape(-1) for channel in np.moveaxis(theirs, axis, 0)]
    found: list[_Affine] = []
    for place, values in enumerate(second):
        fits = [_affine(source, first[source], values) for source in range(len(first))]
        best = min(fits, key=lambda fit: (fit.residual > bound, fit.source != place, fit.residual))
        if best.residual > bound:
            return []
        found.append(best)
    return found


def _affine(source: int, x: Array, y: Array) -> _Affine:
    deviation = x - x.mean()
    size = float(np.sum(deviation * deviation))
    factor = float(np.sum(deviation * y)) / size if size else 0.0
    shift = float(y.mean() - factor * x.mean())
    spread = y - y.mean()
    left = float(np.linalg.norm(factor * x + shift - y) / max(float(np.linalg.norm(spread)), 1e-30))
    return _Affine(source, factor, shift, left if math.isfinite(left) else math.inf)


def _named(name: str, affine: list[_Affine]) -> Finding:
    left = max(fit.residual for fit in affine)
    if [fit.source for fit in affine] != list(range(len(affine))):
        return Finding(
            "preprocessing",
            f"{name}: the port's channels are the reference's in the order {[fit.source for fit in affine]}",
            left,
            "Order the channels as the reference does (RGB, not BGR).",
        )
    factors, shifts = [fit.factor for fit in affine], [fit.shift for fit in affine]
    if all(abs(factor / factors[0] - 1) < 1e-3 for factor in factors) and max(map(abs, shifts)) < 1e-3 * abs(
        factors[0]
    ):
        return Finding(
            "preprocessing",
            f"{name}: the port's values are the reference's times {nice(factors[0])} in every channel",
            left,
            "Scale the values as the reference's processor does.",
        )
    return Finding(
        "preprocessing",
        f"{name}: by channel the port's values are the reference's times {', '.join(map(nice, factors))} plus "
        f"{', '.join(map(nice, shifts))}: another mean, standard deviation or range",
        left,
        "Use the reference's image_mean, image_std and rescale factor.",
    )


def _resampled(name: str, ours: Array, theirs: Array, axis: int | None) -> Finding:
    error = residual(theirs, ours)
    if axis is not None and error < 1:
        planes = np.moveaxis(ours, axis, 0).reshape(-1, *[s for a, s in enumerate(ours.shape) if a != axis][-2:])
        gaps = np.abs(np.moveaxis(theirs - ours, axis, 0).reshape(planes.shape))
        edges = np.abs(np.diff(planes, axis=-1))[..., :-1, :] + np.abs(np.diff(planes, axis=-2))[..., :, :-1]
        together = np.corrcoef(edges.reshape(-1), gaps[..., :-1, :-1].reshape(-1))[0, 1]
        if together > 0.2:
            return Finding(
                "preprocessing",
                f"{name} differs by {error:.1%}, and most where neighbouring pixels differ (correlation "
                f"{together:.2f}): another interpolation or antialiasing",
                error,
                "Resize with the reference's filter (resample) and antialias setting.",
            )
    return Finding(
        "preprocessing",
        f"{name} differs by {error:.2g} (relative), by no one factor and shift",
        error,
        "Give both models the same inputs, then compare the processors step by step.",
    )
