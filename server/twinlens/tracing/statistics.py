"""Statistics and norm profiles of one tensor, in float64.

The work is cut into pieces (`pieces.py`), so that each value comes from memory once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from twinlens.tracing.pieces import piece_elements
from twinlens.tracing.record import Statistics

_LONGEST_PROFILE = 65536
_COMPARED_AS_THEY_ARE = (torch.float16, torch.bfloat16, torch.float32)


class Profile(NamedTuple):
    """`token_norms` is float32 of `rows` = the product of `shape[:-1]`, `channel_norms` float32 of `shape[-1]`; both
    on the CPU. Each is None where it would say nothing (integers, bool, no dimension) or be longer than 65,536."""

    statistics: Statistics | None
    token_norms: torch.Tensor | None
    channel_norms: torch.Tensor | None


class _Sums(NamedTuple):
    total: float
    squares: float
    smallest: float
    largest: float
    zeros: int


def profile(tensor: torch.Tensor) -> Profile:
    """Statistics of a dense tensor with values (not meta, not sparse), of any dtype, shape and device."""
    if tensor.numel() == 0:
        return Profile(None, None, None)
    tensor = _real(tensor)
    if tensor.dim() == 0 or not tensor.is_floating_point():
        return Profile(statistics(tensor), None, None)
    rows = tensor.reshape(-1, tensor.shape[-1])
    row_squares = torch.empty(len(rows), dtype=torch.float64, device=rows.device)
    column_squares = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
    sums = _sums(rows, row_squares, column_squares)
    return Profile(_statistics(sums, rows), _norms(row_squares), _norms(column_squares))


def statistics(tensor: torch.Tensor) -> Statistics | None:
    """The statistics of `profile` alone, at half its cost; None where there is no element."""
    if tensor.numel() == 0:
        return None
    values = _real(tensor).reshape(-1)
    return _statistics(_sums_alone(values), values)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_complex():
        tensor = tensor.resolve_conj().abs()
    return tensor.cpu() if tensor.device.type == "mps" else tensor  # no float64 there


def _norms(squares: torch.Tensor) -> torch.Tensor | None:
    return squares.sqrt().float().cpu() if squares.numel() <= _LONGEST_PROFILE else None


def _sums(rows: torch.Tensor, row_squares: torch.Tensor, column_squares: torch.Tensor) -> _Sums:
    """Of `rows` (R, C), any real dtype; the sums of squares go to `row_squares` (R,) and are added to
    `column_squares` (C,)."""
    height, width = rows.shape
    step = height if rows.device.type != "cpu" else max(1, piece_elements() // width)
    wide, squared = (torch.empty(min(step, height), width, dtype=torch.float64, device=rows.device) for _ in range(2))
    total, smallest, largest, zeros = 0.0, math.inf, -math.inf, 0
    for start, values in zip(range(0, height, step), rows.split(step), strict=True):
        piece = wide[: len(values)].copy_(values)
        total += float(piece.sum())
        low, high = _ends(values if rows.dtype in _COMPARED_AS_THEY_ARE else piece)
        smallest, largest = min(smallest, low), max(largest, high)
        squares = torch.mul(piece, piece, out=squared[: len(values)])
        torch.sum(squares, 1, out=row_squares[start : start + step])
        column_squares += squares.sum(0)
        if smallest <= 0 and float(squares.amin()) == 0:  # counting takes as long as all else together
            zeros += piece.numel() - int(piece.count_nonzero())
    return _Sums(total, float(row_squares.sum()), smallest, largest, zeros)


def _sums_alone(values: torch.Tensor) -> _Sums:
    """Of `values` (N,), any real dtype."""
    step = len(values) if values.device.type != "cpu" else piece_elements()
    wide = torch.empty(min(step, len(values)), dtype=torch.float64, device=values.device)
    total, squares, smallest, largest, zeros = 0.0, 0.0, math.inf, -math.inf, 0
    for part in values.split(step):
        piece = wide[: len(part)].copy_(part)
        total += float(piece.sum())
        squares += float(piece.dot(piece))
        compared = part if values.dtype in _COMPARED_AS_THEY_ARE else piece
        low, high = _ends(compared)
        smallest, largest = min(smallest, low), max(largest, high)
        if low <= 0 <= high and float(compared.abs().amin()) == 0:
            zeros += piece.numel() - int(piece.count_nonzero())
    return _Sums(total, squares, smallest, largest, zeros)


def _ends(values: torch.Tensor) -> tuple[float, float]:
    low, high = values.aminmax()
    return float(low), float(high)


def _statistics(sums: _Sums, values: torch.Tensor) -> Statistics:
    if not math.isfinite(sums.squares):
        return _statistics_of_finite(values)
    mean = sums.total / values.numel()
    return Statistics(
        mean=mean,
        std=_std(values, mean, sums.squares),
        min=sums.smallest,
        max=sums.largest,
        absmax=max(abs(sums.smallest), abs(sums.largest)),
        l2=math.sqrt(sums.squares),
        zeros=sums.zeros,
        nans=0,
        positive_infinities=0,
        negative_infinities=0,
    )


def _std(rows: torch.Tensor, mean: float, squares: float) -> float:
    count = rows.numel()
    if count < 2:
        return math.nan
    deviations = squares - count * mean * mean
    if deviations < 1e-6 * squares:  # the difference of two nearly equal numbers: read the values once more instead
        centred = rows.to(torch.float64) - mean
        deviations = float((centred * centred).sum())
    return math.sqrt(max(deviations, 0.0) / (count - 1))


def _statistics_of_finite(rows: torch.Tensor) -> Statistics:
    values = rows.to(torch.float64).flatten()
    nans = int(values.isnan().sum())
    positive, negative = int((values == math.inf).sum()), int((values == -math.inf).sum())
    finite = values[values.isfinite()]
    zeros = int((finite == 0).sum())
    if finite.numel() == 0:
        nothing = math.nan
        return Statistics(nothing, nothing, nothing, nothing, nothing, nothing, 0, nans, positive, negative)
    low, high = (float(end) for end in finite.aminmax())
    return Statistics(
        mean=float(finite.mean()),
        std=float(finite.std()) if finite.numel() > 1 else math.nan,
        min=low,
        max=high,
        absmax=max(abs(low), abs(high)),
        l2=float(torch.linalg.vector_norm(finite)),
        zeros=zeros,
        nans=nans,
        positive_infinities=positive,
        negative_infinities=negative,
    )
