"""Compare two tensors: how far apart, where most, and along which tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from twinlens.diffing.values import Array
from twinlens.tracing.record import Statistics, Tensor

_PIECE = 1 << 16
_LONGEST_STRIP = 4096
_INFINITE = 1e30
"""Beyond it a number is a mask's stand-in for infinity (`torch.finfo(dtype).min`) and would drown all others."""

Basis = Literal["values", "statistics", "printed", "nothing"]


class Difference(NamedTuple):
    """Of a port's tensor from the reference's. `relative` is |p - r| / |r| in L2, `inf` where NaN or Inf stand at other
    places or the shapes cannot be brought together, NaN where neither has a finite number."""

    basis: Basis
    relative: float
    max_abs: float = math.nan
    index: tuple[int, ...] = ()
    """Of the worst element, in the port's shape."""
    reference: float = math.nan
    port: float = math.nan
    """The two values there."""
    cosine: float = math.nan
    mismatched: float = math.nan
    """Share of elements beyond `|p - r| <= atol + rtol |r|`."""
    unequal_non_finite: int = 0
    """Places where one side has NaN or Inf and the other does not, or another one."""
    note: str = ""

    @property
    def is_comparable(self) -> bool:
        return self.basis != "nothing" and not math.isnan(self.relative)


SAME = Difference("values", 0.0, 0.0, cosine=1.0, mismatched=0.0)


@dataclass(frozen=True, slots=True)
class Tolerance:
    rtol: float
    atol: float


def compare_arrays(reference: Array, port: Array, tolerance: Tolerance) -> Difference:
    """Of two arrays of equal shape, any numeric dtype. Values that are NaN on both sides, or beyond 1e30 in the same
    direction, are left out.

    Products are in the arrays' own dtype over pieces of 65,536 elements, whose sums are added in float64.
    """
    if reference.size == 0:
        return SAME
    shape = port.shape
    r, p = reference.reshape(-1), port.reshape(-1)
    sums = _Sums()
    for start in range(0, r.size, _PIECE):
        sums.add(_wide(r[start : start + _PIECE]), _wide(p[start : start + _PIECE]), start, tolerance)
    return sums.difference(shape, r.size)


def _wide(values: Array) -> Array:
    if values.dtype in (np.float32, np.float64, np.complex64, np.complex128):
        return values
    return values.astype(np.float64)


class _Sums:
    """Adds up piece by piece."""

    def __init__(self) -> None:
        self.squares = self.reference = self.port = self.product = 0.0
        self.worst, self.place = -1.0, 0
        self.values = (math.nan, math.nan)
        self.mismatched = self.unequal = self.finite = 0

    def add(self, r: Array, p: Array, start: int, tolerance: Tolerance) -> None:
        if np.iscomplexobj(r) or np.iscomplexobj(p):
            r, p = np.asarray(r, complex), np.asarray(p, complex)
        with np.errstate(all="ignore"):
            gap = p - r
            squares, ours, theirs = _dot(gap, gap), _dot(r, r), _dot(p, p)
        if squares < _INFINITE**1.5 and ours < _INFINITE**1.5 and theirs < _INFINITE**1.5:
            self.finite += r.size
        else:
            r, p, gap = self._without_infinite(r, p)
            squares, ours, theirs = _dot(gap, gap), _dot(r, r), _dot(p, p)
        self.squares += squares
        self.reference += ours
        self.port += theirs
        self.product += _dot(r, p)
        worst = np.abs(gap)
        place = int(worst.argmax())
        if worst[place] > self.worst:
            self.worst, self.place = float(worst[place]), start + place
            self.values = (float(np.real(r[place])), float(np.real(p[place])))
        if worst[place] > tolerance.atol:
            self.mismatched += int(np.count_nonzero(worst > tolerance.atol + tolerance.rtol * np.abs(r)))

    def _without_infinite(self, r: Array, p: Array) -> tuple[Array, Array, Array]:
        """Both with zeros where either has no finite number; those that differ there are counted."""
        with np.errstate(all="ignore"):
            r_finite, p_finite = np.abs(r) < _INFINITE, np.abs(p) < _INFINITE
            either = ~(r_finite & p_finite)
            same = (np.isnan(r) & np.isnan(p)) | (~r_finite & ~p_finite & (np.sign(r) == np.sign(p)))
        self.unequal += int(np.count_nonzero(either & ~same))
        self.finite += int(np.count_nonzero(~either))
        r, p = (np.where(either, 0, x).astype(np.result_type(x, np.float64)) for x in (r, p))
        return r, p, p - r

    def difference(self, shape: tuple[int, ...], count: int) -> Difference:
        index = tuple(int(i) for i in np.unravel_index(self.place, shape)) if shape else ()
        norm = math.sqrt(self.reference) * math.sqrt(self.port)
        if self.unequal:
            relative = math.inf
        elif not self.finite:
            relative = math.nan
        else:
            relative = _ratio(math.sqrt(self.squares), math.sqrt(self.reference))
        return Difference(
            "values",
            relative,
            self.worst,
            index,
            *self.values,
            cosine=self.product / norm if norm else (1.0 if self.squares == 0 else 0.0),
            mismatched=(self.mismatched + self.unequal) / count,
            unequal_non_finite=self.unequal,
            note="" if self.finite else "no finite number on either side",
        )


def _dot(a: Array, b: Array) -> float:
    return float(np.vdot(a, b).real)


def _ratio(error: float, size: float) -> float:
    if error == 0:
        return 0.0
    return error / size if size else math.inf


def relative_error(port: Array, reference: Array) -> float:
    """|p - r| / |r| in L2, float64, over the places where both are finite; `inf` where a NaN or Inf differs."""
    r, p = np.asarray(reference), np.asarray(port)
    if r.shape != p.shape:
        return math.inf
    with np.errstate(all="ignore"):
        gap = np.asarray(p - r)
        if not np.isfinite(gap).all():
            both = np.isfinite(r) & np.isfinite(p)
            if not np.array_equal(np.isfinite(r), np.isfinite(p)):
                return math.inf
            gap, r = gap[both], r[both]
        error = math.sqrt(float(np.sum(np.abs(gap) ** 2, dtype=np.float64)))
        return _ratio(error, math.sqrt(float(np.sum(np.abs(r) ** 2, dtype=np.float64))))


def compare_statistics(r: Statistics, p: Statistics, profiles: tuple[tuple[Array, Array], ...]) -> Difference:
    """From ten numbers a side and, where they were kept, norms by token and by channel (pairs of equal length)."""
    counts = (
        (r.nans, r.positive_infinities, r.negative_infinities),
        (p.nans, p.positive_infinities, p.negative_infinities),
    )
    if counts[0] != counts[1]:
        return Difference(
            "statistics", math.inf, unequal_non_finite=sum(abs(a - b) for a, b in zip(*counts, strict=True))
        )
    if math.isnan(r.l2) or math.isnan(p.l2):
        same = math.isnan(r.l2) and math.isnan(p.l2)
        return Difference(
            "statistics", math.nan if same else math.inf, note="no finite number on either side" if same else ""
        )
    spread = max(r.std, p.std) if r.std == r.std and p.std == p.std else 0.0
    size = max(abs(r.mean), spread)
    errors = [
        _ratio(abs(r.l2 - p.l2), r.l2),
        _ratio(abs(r.absmax - p.absmax), r.absmax),
        _ratio(abs(r.min - p.min), r.absmax),
        _ratio(abs(r.max - p.max), r.absmax),
        _ratio(abs(r.mean - p.mean), size),
        _ratio(abs(r.std - p.std), size) if spread else 0.0,
        *(relative_error(b, a) for a, b in profiles),
    ]
    return Difference("statistics", max(errors), abs(r.absmax - p.absmax))


def compare_printed(reference: Array, port: Array) -> Difference:
    """Of the numbers that two texts of tensors show; `nothing` where they show different many."""
    if reference.shape != port.shape or reference.size == 0:
        return Difference("nothing", math.nan, note="the printed values cannot be matched")
    found = compare_arrays(reference, port, Tolerance(1e-3, 1e-8))
    return Difference(
        "printed", found.relative, found.max_abs, (), found.reference, found.port, found.cosine, found.mismatched
    )


def same_bytes(reference: Array, port: Array) -> bool:
    """Whether two flat arrays are equal bit for bit."""
    if reference.dtype != port.dtype or reference.size != port.size:
        return False
    ours, theirs = (np.ascontiguousarray(x).view(np.uint8) for x in (reference, port))
    whole = ours.size - ours.size % 8
    words = ours[:whole].view(np.uint64), theirs[:whole].view(np.uint64)
    return np.array_equal(ours[whole:], theirs[whole:]) and all(
        np.array_equal(words[0][start : start + _PIECE], words[1][start : start + _PIECE])
        for start in range(0, whole // 8, _PIECE)
    )


def token_strip(reference: Array, port: Array) -> Array:
    """Relative error by token: over the last dimension of two arrays of equal shape, (tokens,) in row-major order.

    At most 4,096 entries; of a longer tensor, the worst in each of as many runs. A token whose reference is 0 counts by
    the mean size of all tokens.
    """
    if reference.ndim < 2:
        return np.zeros(0)
    r, p = (np.nan_to_num(np.asarray(x, np.float64)).reshape(-1, x.shape[-1]) for x in (reference, port))
    error, size = np.linalg.norm(p - r, axis=1), np.linalg.norm(r, axis=1)
    strip = error / np.maximum(size, max(float(size.mean()), 1e-30) * 1e-3)
    if strip.size > _LONGEST_STRIP:
        step = math.ceil(strip.size / _LONGEST_STRIP)
        strip = np.maximum.reduceat(strip, np.arange(0, strip.size, step))
    return strip


def is_whole(tensor: Tensor) -> bool:
    """Whether a tensor holds whole numbers or truth values."""
    return tensor.dtype == "bool" or "int" in tensor.dtype
