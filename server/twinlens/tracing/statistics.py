"""Statistics and norm profiles of one tensor, in float64.

The work is cut into pieces of 32,000 elements: such a piece stays in a core's cache, and torch runs it on one thread,
so that statistics cost the same beside a busy machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from twinlens.tracing.record import Statistics

_PIECE = 32000
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
    row_squares: torch.Tensor
    column_squares: torch.Tensor


def profile(tensor: torch.Tensor) -> Profile:
    """Statistics of a dense tensor with values (not meta, not sparse), of any dtype, shape and device."""
    if tensor.numel() == 0:
        return Profile(None, None, None)
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_complex():
        tensor = tensor.resolve_conj().abs()
    rows = tensor.detach().reshape(-1, tensor.shape[-1] if tensor.dim() else 1)
    if rows.device.type == "mps":  # no float64 there
        rows = rows.cpu()
    sums = _sums(rows)
    statistics = _statistics(sums, rows) if math.isfinite(sums.squares) else _statistics_of_finite(rows)
    if tensor.dim() == 0 or not tensor.is_floating_point():
        return Profile(statistics, None, None)
    return Profile(statistics, _norms(sums.row_squares), _norms(sums.column_squares))


def _norms(squares: torch.Tensor) -> torch.Tensor | None:
    return squares.sqrt().float().cpu() if squares.numel() <= _LONGEST_PROFILE else None


def _sums(rows: torch.Tensor) -> _Sums:
    """Of `rows` (R, C), any real dtype: everything that one reading of the values gives."""
    height, width = rows.shape
    step = height if rows.device.type != "cpu" else max(1, _PIECE // width)
    row_squares = torch.empty(height, dtype=torch.float64, device=rows.device)
    column_squares = torch.zeros(width, dtype=torch.float64, device=rows.device)
    wide, squared = (torch.empty(min(step, height), width, dtype=torch.float64, device=rows.device) for _ in range(2))
    total, smallest, largest, zeros = 0.0, math.inf, -math.inf, 0
    for start in range(0, height, step):
        values = rows[start : start + step]
        piece = wide[: len(values)].copy_(values)
        compared = values if rows.dtype in _COMPARED_AS_THEY_ARE else piece
        total += float(piece.sum())
        smallest, largest = min(smallest, float(compared.amin())), max(largest, float(compared.amax()))
        squares = torch.mul(piece, piece, out=squared[: len(values)])
        torch.sum(squares, 1, out=row_squares[start : start + step])
        column_squares += squares.sum(0)
        if smallest <= 0 and float(squares.amin()) == 0:  # counting takes as long as all else together
            zeros += piece.numel() - int(piece.count_nonzero())
    return _Sums(total, float(row_squares.sum()), smallest, largest, zeros, row_squares, column_squares)


def _statistics(sums: _Sums, rows: torch.Tensor) -> Statistics:
    mean = sums.total / rows.numel()
    return Statistics(
        mean=mean,
        std=_std(rows, mean, sums.squares),
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
