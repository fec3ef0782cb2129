"""Hashes of a tensor's values that survive, or name, a transposition.

Each value's float32 bits are mixed into a 32-bit number m. Of each hash the lower half is the sum of m². The upper half
of `values` is the sum of m, of `ordered` the sum of m times an odd number that grows with its place. Every half is
modulo 2**32, which is what torch's int32 does. A value that float32 does not hold counts with the float64 bits of what
it leaves out, so that equal values in any two dtypes hash alike. -0.0 counts as 0.0, every NaN as the same NaN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import torch

from twinlens.tracing.pieces import piece_elements
from twinlens.tracing.record import Fingerprint

_MODULUS = 1 << 32


def fingerprint(tensor: torch.Tensor, *, is_plain: bool = False) -> Fingerprint:
    """Of a dense tensor with values, of any shape, dtype and device; `is_plain` where it is known to hold neither
    zeros nor NaN.

    For a batch of matrices (B, R, C), `ordered` weighs m[b, i, j] by 2 (b R C + i C + j) + 1, and `transposed` by
    2 (b R C + j R + i) + 1. Both need only the sums of m along each of the three dimensions, so that one reading of the
    values gives all.
    """
    if tensor.numel() == 0:
        return Fingerprint(*("0" * 16,) * 3)
    batch = tensor.detach().reshape(-1, *tensor.shape[-2:]) if tensor.dim() > 1 else tensor.detach().reshape(1, 1, -1)
    _depth, height, width = batch.shape
    sums = _sums_of_batch(batch, is_plain=is_plain)
    total = int(sums.rows.sum())
    deep, down, across = (_weighted(item) for item in (sums.matrices, sums.rows, sums.columns))
    before = 2 * height * width * deep + total
    hashes = (total, before + 2 * (width * down + across), before + 2 * (height * across + down))
    return Fingerprint(*(f"{number % _MODULUS:08x}{sums.squares % _MODULUS:08x}" for number in hashes))


class _Sums(NamedTuple):
    """int32, modulo 2**32: of m over all but one dimension of a batch (B, R, C), and of all m²."""

    matrices: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    squares: int


def _weighted(sums: torch.Tensor) -> int:
    return int((sums * torch.arange(len(sums), device=sums.device)).sum())


def _sums_of_batch(batch: torch.Tensor, *, is_plain: bool) -> _Sums:
    depth, height, width = batch.shape
    if depth > 1 and height * width <= piece_elements():  # many small ones, such as the kernels of a convolution
        in_each, over_all, squares = _sums(batch.reshape(depth, -1), is_plain=is_plain)
        plane = over_all.reshape(height, width)
        return _Sums(in_each, _added(plane, 1), _added(plane, 0), squares)
    found = [_sums(matrix, is_plain=is_plain) for matrix in batch]
    rows = found[0][0] if depth == 1 else _added(torch.stack([item[0] for item in found]), 0)
    columns = found[0][1] if depth == 1 else _added(torch.stack([item[1] for item in found]), 0)
    matrices = torch.stack([_added(item[0], 0) for item in found])
    return _Sums(matrices, rows, columns, sum(item[2] for item in found))


def _sums(matrix: torch.Tensor, *, is_plain: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Of m in each row and in each column, and of all m²."""
    height, width = matrix.shape
    rows, columns = (torch.zeros(size, dtype=torch.int32, device=matrix.device) for size in matrix.shape)
    wide = min(width, piece_elements()) if matrix.device.type == "cpu" else width
    high = min(height, max(1, piece_elements() // width)) if matrix.device.type == "cpu" else height
    squares = 0
    for top, left in product(range(0, height, high), range(0, width, wide)):
        piece = matrix[top : top + high, left : left + wide]
        mixed = _mixed(_bits(piece, is_plain=is_plain)).to(matrix.device)
        rows[top : top + high] += _added(mixed, 1)
        columns[left : left + wide] += _added(mixed, 0)
        squares += int(mixed.mul_(mixed).sum(dtype=torch.int32))
    return rows, columns, squares


def _added(numbers: torch.Tensor, dimension: int) -> torch.Tensor:
    return numbers.sum(dimension, dtype=torch.int32)


def _bits(values: torch.Tensor, *, is_plain: bool) -> torch.Tensor:
    """int32 of the same shape, one number a value: of a complex one, those of both parts joined."""
    if values.device.type == "mps":  # no float64 there
        values = values.cpu()
    if values.is_quantized:
        values = values.dequantize()
    if values.is_complex():
        pair = torch.view_as_real(values.resolve_conj())
        return _bits(pair[..., 0], is_plain=False) ^ (_bits(pair[..., 1], is_plain=False) * 3)
    if values.is_floating_point() and values.element_size() <= 4:
        single = values.to(torch.float32)
        return (single if is_plain else _canonical(single)).view(torch.int32)
    exact = values.to(torch.float64)
    nearest = exact.to(torch.float32)
    left_out = torch.where(nearest.isfinite(), exact - nearest, torch.where(exact.isfinite(), exact, 0.0)) + 0.0
    words = left_out.view(torch.int64)
    return _canonical(nearest).view(torch.int32) + (words * _ODD_64).bitwise_right_shift(32).to(torch.int32)


def _canonical(values: torch.Tensor) -> torch.Tensor:
    """A copy with one zero and one NaN."""
    values = values + 0.0
    if values.sum().isnan():  # also where infinities cancel each other: filling in no NaN does no harm
        values.masked_fill_(values.isnan(), torch.nan)
    return values


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """A multiplication and an xor with the upper half, which a changed sign changes throughout."""
    words = bits * _ODD_32
    return words.bitwise_xor_(words >> 16)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number


_ODD_32 = _signed(0x9E3779B1, 32)
_ODD_64 = _signed(0x9E3779B97F4A7C15, 64)


def combined_hash(parts: Iterable[str]) -> str:
    """16 hex digits over `parts` in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()
