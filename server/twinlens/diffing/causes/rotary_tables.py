"""Rotary tables: the angle of each pair of dimensions at each position, however a side keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from twinlens.diffing.causes.evidence import View, is_floating, nice
from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Tensor

_UNIT = 3e-2
"""How far cos² + sin² may be from one constant: bfloat16 tables are about 1e-2 off."""
_USUAL_BASES = (10_000.0, 500_000.0, 1_000_000.0)


@dataclass(frozen=True, slots=True)
class Table:
    """`cosine` and `sine` are (positions, pairs), float64, or (batch, positions, pairs)."""

    cosine: Array
    sine: Array
    label: str
    call: int | None
    """The call that made it; None for one of the frame's own or made of a buffer."""
    frequencies: Array | None = None
    """(pairs,), where a buffer of them is there."""
    is_sine_first: bool = False
    """Whether the tensor of sines stands before that of cosines."""

    @property
    def pairs(self) -> int:
        return self.cosine.shape[-1]

    def reversed(self) -> Table:
        """The same angles the other way round."""
        return replace(self, sine=-self.sine)

    def at(self, batch: int) -> tuple[Array, Array]:
        if self.cosine.ndim == 2:
            return self.cosine, self.sine
        batch = min(batch, len(self.cosine) - 1)
        return self.cosine[batch], self.sine[batch]


def tables_of(view: View, length: int) -> list[Table]:
    """Every table for `length` positions that the code could see, or that follows from a buffer of frequencies."""
    found: list[Table] = []
    tensors = list(_visible(view))
    for place, (tensor, label, call) in enumerate(tensors):
        if not view.side.values.has(tensor):
            continue
        if tensor.dtype.startswith("complex"):
            found += of_complex(view, tensor, label, call, length)
        elif place + 1 < len(tensors) and is_floating(tensor) and tensors[place + 1][0].shape == tensor.shape:
            found += of_two(view, tensor, tensors[place + 1][0], label, call, length)
        if is_floating(tensor):
            found += _of_joined(view, tensor, label, call, length)
    found += list(of_buffers(view.side, length))
    return found


def _visible(view: View) -> Iterator[tuple[Tensor, str, int | None]]:
    """Tensors that the frame and the frames around it saw, the frame's own first."""
    flow, calls = view.side.flow, view.side.trace.calls
    seen: set[int] = set()
    frames = [view.frame, *flow.ancestors(view.frame)]
    for frame in frames:
        slots = [(slot, None) for slot in calls[frame].inputs]
        for child in flow.children[frame]:
            if flow.entered[child] > view.time:
                break
            slots += [(slot, None) for slot in calls[child].inputs]
            if flow.left[child] <= view.time:
                slots += [(slot, child) for slot in calls[child].outputs]
        for slot, call in slots:
            if slot.tensor is not None and slot.tensor.id not in seen:
                seen.add(slot.tensor.id)
                birth = flow.births[slot.tensor.id]
                maker = birth.call if birth.side == "outputs" else birth.frame
                yield slot.tensor, slot.place, call if call is not None else maker


def _per_position(values: Array, length: int) -> Array | None:
    """As (positions, columns) or (batch, positions, columns); None where no dimension is the positions."""
    values = np.squeeze(values)
    if values.ndim == 2 and values.shape[0] >= length:
        return values[:length]
    if values.ndim == 3 and values.shape[1] >= length:
        return values[:, :length]
    if values.ndim == 3 and values.shape[0] >= length and values.shape[1] < length:
        return values[:length, 0]
    return None


def of_complex(view: View, tensor: Tensor, label: str, call: int | None, length: int) -> Iterator[Table]:
    values = _per_position(np.asarray(view.array(tensor), np.complex128), length)
    if values is not None and _is_constant(np.abs(values)):
        yield Table(values.real, values.imag, label, call)


def of_two(view: View, cosine: Tensor, sine: Tensor, label: str, call: int | None, length: int) -> Iterator[Table]:
    if len(cosine.shape) < 2 or cosine.shape[-1] > 1024:
        return
    c, s = (_per_position(np.asarray(view.array(t), np.float64), length) for t in (cosine, sine))
    if c is None or s is None or c.shape != s.shape or not np.isfinite(c).all() or not np.isfinite(s).all():
        return
    if not _is_constant(np.hypot(c, s)):
        return
    is_sine_first = bool(np.abs(s[..., 0, :]).max() > 0.5 and np.abs(c[..., 0, :]).max() < 0.5)
    c, s = (s, c) if is_sine_first else (c, s)
    yield Table(*_without_repeats(c, s), label, call, is_sine_first=is_sine_first)


def _of_joined(view: View, tensor: Tensor, label: str, call: int | None, length: int) -> Iterator[Table]:
    """One tensor (…, positions, pairs, 2) or with cos and sin side by side."""
    if len(tensor.shape) >= 3 and tensor.shape[-1] == 2:
        values = np.asarray(view.array(tensor), np.float64)
        c, s = _per_position(values[..., 0], length), _per_position(values[..., 1], length)
        if (
            c is not None
            and s is not None
            and c.shape == s.shape
            and np.isfinite(values).all()
            and _is_constant(np.hypot(c, s))
        ):
            yield Table(c, s, label, call)


def _is_constant(modulus: Array) -> bool:
    mean = float(modulus.mean())
    return 0.2 < mean < 5 and float(np.abs(modulus - mean).max()) < _UNIT * mean


def _without_repeats(c: Array, s: Array) -> tuple[Array, Array]:
    """One column a pair: halves that are equal, or neighbours that are, are taken once."""
    width = c.shape[-1]
    if width % 2 == 0:
        half = width // 2
        if np.array_equal(c[..., :half], c[..., half:]) and np.array_equal(s[..., :half], s[..., half:]):
            return c[..., :half], s[..., :half]
        if np.array_equal(c[..., ::2], c[..., 1::2]) and np.array_equal(s[..., ::2], s[..., 1::2]):
            return c[..., ::2], s[..., ::2]
    return c, s


def of_buffers(side: Side, length: int) -> Iterator[Table]:
    for buffer in side.trace.parameters:
        shape = buffer.tensor.shape
        if not buffer.is_buffer or len(shape) != 1 or not 1 <= shape[0] <= 512 or not is_floating(buffer.tensor):
            continue
        if not side.values.has(buffer.tensor):
            continue
        frequencies = np.asarray(side.values.array(buffer.tensor), np.float64)
        if np.isfinite(frequencies).all():
            angles = np.arange(length)[:, None] * frequencies
            yield Table(np.cos(angles), np.sin(angles), buffer.name, None, frequencies)


def table_of_base(theta: float, size: int, length: int) -> Table:
    """The angles of the RoFormer paper: position × theta ** (-2 i / size)."""
    frequencies = theta ** (-np.arange(0, size, 2) / size)
    angles = np.arange(length)[:, None] * frequencies
    return Table(np.cos(angles), np.sin(angles), f"theta {nice(theta)}", None, frequencies)


def usual_tables(view: View, sizes: Iterable[int], length: int) -> list[Table | None]:
    """Tables that code computes on the spot: of bases that the module or the configuration names, and of usual ones,
    for heads of `sizes` and the half of them."""
    attributes = view.module.attributes if view.module else {}
    named = [
        float(value)
        for name, value in (*attributes.items(), *view.side.trace.info.config.items())
        if ("theta" in name or "base" in name) and isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    bases = dict.fromkeys((*(value for value in named if value > 1), *_USUAL_BASES))
    widths = sorted({width for size in sizes for width in (size, size // 2) if width >= 4 and width % 2 == 0})
    return [table_of_base(base, width, length) for base in bases for width in widths]


def base_of(frequencies: Array) -> float | None:
    """theta of frequencies theta ** (-2 i / size); None where they are not of that form."""
    if len(frequencies) < 2 or not (frequencies > 0).all() or abs(frequencies[0] - 1) > 1e-2:
        return None
    logs = np.log(frequencies)
    exponents = np.arange(len(frequencies)) / len(frequencies)
    slope = float(np.sum(logs * exponents) / np.sum(exponents * exponents))
    if np.abs(logs - slope * exponents).max() > 1e-2 * max(1.0, abs(slope)):
        return None
    return math.exp(-slope)
