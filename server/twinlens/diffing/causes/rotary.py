"""Rotary tables of another base, another share of the head, in low precision, not initialised, or shifted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, is_floating, nice, residual
from twinlens.diffing.causes.rotary_tables import Table, base_of, of_buffers, of_complex, of_two
from twinlens.diffing.columns import rounded_to
from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Tensor


def find(site: Site) -> Iterator[Finding]:
    """A table on both sides: what a module returns, or two tensors that a call is given side by side."""
    if any(view.call.is_function for view in site.views):
        return
    shown = site.seen_by.reference[0], site.seen_by.port[0]
    tables = [_returned_table(view) or _given_table(view, call) for view, call in zip(site.views, shown, strict=True)]
    if tables[0] is not None and tables[1] is not None:
        yield from compare_tables(site, tables[0], tables[1])


def _returned_table(view: View) -> Table | None:
    """Of a module that returns the site's tensor and a table."""
    outputs = [
        slot.tensor for slot in view.call.outputs if slot.tensor is not None and view.side.values.has(slot.tensor)
    ]
    is_returned = any(tensor.id == view.tensor.id for tensor in outputs)
    return _table_among(view, outputs[:2]) if is_returned else None


def _given_table(view: View, call: int) -> Table | None:
    """The site's tensor and its neighbour among the arguments of the call that shows it."""
    given = [slot.tensor for slot in view.side.trace.calls[call].inputs if slot.tensor is not None]
    place = next((place for place, tensor in enumerate(given) if tensor.id == view.tensor.id), None)
    if place is None or not all(map(view.side.values.has, given)):
        return None
    found = (_table_among(view, given[start : start + 2]) for start in (place, place - 1) if start >= 0)
    return next((table for table in found if table is not None), None)


def _table_among(view: View, tensors: list[Tensor]) -> Table | None:
    if not tensors or len(tensors[0].shape) < 2:
        return None
    shape = [size for size in tensors[0].shape if size != 1]
    length = shape[-2] if len(shape) >= 2 else 1
    if tensors[0].dtype.startswith("complex"):
        return next(of_complex(view, tensors[0], "", None, length), None)
    if len(tensors) >= 2 and tensors[0].shape == tensors[1].shape and is_floating(tensors[0]):
        return next(of_two(view, tensors[0], tensors[1], "", None, length), None)
    return None


def compare_tables(site: Site, ours: Table, theirs: Table) -> Iterator[Finding]:
    """Why two tables differ; nothing where they do not."""
    frequencies = _frequencies(site.reference.side, ours), _frequencies(site.port.side, theirs)
    calls = ours.call, theirs.call
    where = theirs.label or "the rotary table"
    broken = _broken(frequencies[1], theirs)
    if broken and not _broken(frequencies[0], ours) and _has_frequencies(site.port.side, frequencies[0]):
        yield Finding(
            "position-offset",
            "the port rotates every token by the angle of position 0, though its frequencies are the reference's",
            0.0,
            "Pass each token's position to the rotary embedding.",
            calls=calls,
        )
        return
    if broken and not _broken(frequencies[0], ours):
        yield Finding(
            "buffer-not-initialised",
            f"the port's rotary frequencies are {broken}: the buffer was not initialised",
            0.0,
            "Compute inv_freq when the model is built or loaded: a non-persistent buffer is in no checkpoint.",
            calls=calls,
        )
        return
    if ours.pairs != theirs.pairs:
        yield Finding(
            "rope-base",
            f"the reference rotates {2 * ours.pairs} dimensions of a head, the port {2 * theirs.pairs}",
            0.0,
            "Use the reference's share of rotated dimensions (partial rotary factor).",
            calls=calls,
        )
        return
    first, second = frequencies
    if first is None or second is None or residual(second, first) <= site.fit * 1e-2:
        yield from _by_angle(site, ours, theirs, calls)
        return
    for dtype in ("bfloat16", "float16"):
        if (
            np.array_equal(rounded_to(first, dtype), rounded_to(second, "float32"))
            or residual(second, rounded_to(first, dtype)) < 1e-7
        ):
            yield Finding(
                "low-precision-frequencies",
                f"the port's rotary frequencies are the reference's rounded to {dtype}: angles are off by "
                f"{nice(float(np.abs(second - first).max()))} rad a position",
                residual(second, rounded_to(first, dtype)),
                "Compute the frequencies and angles in float32.",
                calls=calls,
            )
            return
    if not _is_geometric(second) and _is_geometric(first) and not _is_scaled(first, second):
        yield Finding(
            "buffer-not-initialised",
            f"the port's rotary frequencies ({where}) follow no base: {_listed(second)}; the reference's are "
            f"{_listed(first)}",
            0.0,
            "Compute inv_freq when the model is built or loaded: a non-persistent buffer is in no checkpoint.",
            calls=calls,
        )
        return
    yield Finding("rope-base", _base_message(first, second), 0.0, _base_change(first), calls=calls)


def _base_message(first: Array, second: Array) -> str:
    bases = [base_of(values) for values in (first, second)]
    if bases[0] is not None and bases[1] is not None and abs(bases[0] - bases[1]) > 1e-3 * bases[0]:
        return f"the reference rotates with theta {nice(bases[0])}, the port with {nice(bases[1])}"
    ratio = second / first
    if np.ptp(ratio) < 1e-3 * abs(float(ratio.mean())):
        return f"the port's rotary frequencies are the reference's times {nice(float(ratio.mean()))} (linear scaling)"
    return (
        f"the port's rotary frequencies are the reference's times {nice(float(ratio.min()))} to "
        f"{nice(float(ratio.max()))} by dimension (rope scaling)"
    )


def _base_change(first: Array) -> str:
    base = base_of(first)
    return f"Set rope_theta to {nice(base)}." if base is not None else "Apply the reference's rope scaling."


def _by_angle(site: Site, ours: Table, theirs: Table, calls: tuple[int | None, int | None]) -> Iterator[Finding]:
    """Equal frequencies, other tables: angles that were rounded, or positions that were counted otherwise."""
    (c, s), (d, t) = ours.at(0), theirs.at(0)
    if c.shape != d.shape:
        return
    gap = np.abs(np.angle((d + 1j * t) * np.conj(c + 1j * s)))
    if gap.max() <= max(site.fit, 4 * site.noise.unit):
        return
    by_position = gap.max(-1)
    if np.ptp(gap[:, 0]) < 1e-3 and by_position.min() > 1e-3:
        shift = float(np.median(np.angle((d + 1j * t) * np.conj(c + 1j * s))[:, 0]))
        yield Finding(
            "position-offset",
            f"the port rotates each token as one {nice(abs(shift))} positions {'later' if shift > 0 else 'earlier'}",
            0.0,
            "Count positions as the reference does.",
            calls=calls,
        )
        return
    frequencies = _frequencies(site.reference.side, ours)
    if frequencies is None:
        return
    positions = np.arange(len(c))[:, None]
    for dtype in ("bfloat16", "float16"):
        for angles in (
            rounded_to(positions * frequencies, dtype),
            rounded_to(rounded_to(positions, dtype) * rounded_to(frequencies, dtype), dtype),
        ):
            if residual(np.cos(angles), d) < 0.2 * residual(c, d) + 1e-6:
                yield Finding(
                    "low-precision-frequencies",
                    f"the port computes the rotary angles in {dtype}: they are off by up to {nice(float(gap.max()))} "
                    "rad",
                    residual(np.cos(angles), d),
                    "Compute the frequencies and angles in float32.",
                    calls=calls,
                )
                return


def _frequencies(side: Side, table: Table) -> Array | None:
    """(pairs,): from the buffer that lies nearest to the table, else from its own angles at the first positions."""
    if table.frequencies is not None:
        return table.frequencies
    c, s = table.at(0)
    if len(c) < 2:
        return None
    angles = np.unwrap(np.angle(c + 1j * s), axis=0)
    own = (angles[-1] - angles[0]) / (len(c) - 1)
    steps = np.diff(angles, axis=0)
    if np.abs(steps - own).max() > 5e-2:
        return None
    near = [
        buffer.frequencies
        for buffer in of_buffers(side, 2)
        if buffer.frequencies is not None
        and buffer.frequencies.shape == own.shape
        and np.abs(buffer.frequencies - own).max() < 2e-3
    ]
    return near[0] if near else own


def _has_frequencies(side: Side, frequencies: Array | None) -> bool:
    """Whether a buffer of the side holds them."""
    return frequencies is not None and any(
        buffer.frequencies is not None
        and buffer.frequencies.shape == frequencies.shape
        and residual(buffer.frequencies, frequencies) < 2e-2
        for buffer in of_buffers(side, 2)
    )


def _broken(frequencies: Array | None, table: Table) -> str:
    """What is wrong with frequencies that nobody computed; empty where they may be right."""
    cosine, sine = table.at(0)
    if not np.isfinite(cosine).all():
        return "not finite"
    if np.all(np.abs(sine) < 1e-6) and len(cosine) > 1:
        return "all zero (cos is 1, sin 0 at every position)"
    if frequencies is not None:
        if not np.isfinite(frequencies).all():
            return "not finite"
        if len(frequencies) > 1 and np.ptp(frequencies) == 0:
            return f"all {nice(float(frequencies[0]))}"
    return ""


def _is_geometric(frequencies: Array) -> bool:
    return base_of(frequencies) is not None or (
        bool((frequencies > 0).all()) and bool((np.diff(frequencies) <= 0).all())
    )


def _is_scaled(first: Array, second: Array) -> bool:
    with np.errstate(all="ignore"):
        ratio = second / first
    return bool(np.isfinite(ratio).all()) and float(ratio.min()) > 1e-3 and bool((np.diff(second) <= 0).all())


def _listed(values: Array) -> str:
    shown = ", ".join(nice(float(value)) for value in values[:3])
    return f"{shown}{', …' if len(values) > 3 else ''}"
