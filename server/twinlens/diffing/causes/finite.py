"""NaN and Inf: held by a parameter, given as an input, or made by the code from numbers that are finite."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.attention_view import BLOCKED
from twinlens.diffing.causes.evidence import Finding, Site, View, is_floating, nice, short
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array

_LARGEST_HALF = 65504.0


def find_held(site: Site) -> Iterator[Finding]:
    """Values that are not finite in what the port's code is given: its parameters, or the root's arguments."""
    is_argument = all(
        view.call.parent is None and view.tensor.id in {slot.tensor.id for slot in view.call.inputs if slot.tensor}
        for view in site.views
    )
    if is_argument:
        count = _added(site)
        if count:
            name = site.point.place_port
            yield Finding(
                "preprocessing",
                f"{name} holds {count} in the port, where the reference's are finite",
                0.0,
                "Give both models the same inputs, then look at what divides by zero or overflows before the model.",
            )
        return
    if not _counted(site.port.target() if site.is_comparable else np.zeros(0)):
        return
    known = list(_held(site.reference).values())
    for name, values in _held(site.port).items():
        if not any(np.array_equal(np.isfinite(values), np.isfinite(other)) for other in known):
            full = f"{short(site.port.call.path)}.{name}"
            yield Finding(
                "not-finite",
                f"{full} holds {_counted(values)} in the port: not what the reference holds",
                0.0,
                f"Look at how {name} is converted, cast or initialised.",
            )
            return


def find_made(site: Site) -> Iterator[Finding]:
    """Values that are not finite, made of finite ones."""
    if not site.is_clean or not site.is_comparable:
        return
    count = _added(site)
    if not count:
        return
    largest = float(np.max(np.abs(site.reference.target()), initial=0.0, where=np.isfinite(site.reference.target())))
    is_too_large = site.port.tensor.dtype == "float16" and largest > _LARGEST_HALF / 2
    why = f", whose largest value is {nice(largest)}: beyond 65504 float16 overflows" if is_too_large else ""
    yield Finding(
        "not-finite",
        f"the port makes {count} of finite values, at places where the reference has numbers{why}",
        0.0,
        "Compute this step in float32 or bfloat16."
        if is_too_large
        else f"Look for a division by zero, a root or logarithm of a negative number in {site.port.node.class_name}.",
    )


def _added(site: Site) -> str:
    """What the port's tensor holds besides numbers where the reference has numbers; very small scores are masked."""
    if not site.is_comparable or not is_floating(site.port.tensor):
        return ""
    both = conformed(site.reference.target(), site.port.target())
    if both is None:
        return ""
    return _counted(both[1][np.isfinite(both[0]) & (both[0] > BLOCKED)])


def _held(view: View) -> dict[str, Array]:
    """By last name: the frame's own parameters and buffers that hold more than numbers."""
    owned = [item for item in view.node.parameters if is_floating(item.tensor) and view.side.values.has(item.tensor)]
    values = {item.name.rpartition(".")[2]: view.side.values.array(item.tensor) for item in owned}
    return {name: array for name, array in values.items() if _counted(array)}


def _counted(values: Array) -> str:
    if not np.issubdtype(values.dtype, np.floating):
        return ""
    nans, infinities = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    said = [f"{count} {word}" for count, word in ((nans, "NaN"), (infinities, "Inf")) if count]
    return " and ".join(said)
