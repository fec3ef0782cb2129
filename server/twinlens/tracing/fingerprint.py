"""Hashes of a tensor's values that survive, or name, a transposition.

Each value's float32 bits are mixed and squared; `values` is the sum of the squares, `ordered` the sum of each square
times an odd number that grows with its place. Sums are modulo 2**64, which is what torch's int64 does. A value that
float32 does not hold counts with the float64 bits of what it leaves out, so that equal values in any two dtypes hash
alike. -0.0 counts as 0.0, every NaN as the same NaN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import torch

from twinlens.tracing.record import Fingerprint

_PIECE = 32000
_MODULUS = 1 << 64


def fingerprint(tensor: torch.Tensor) -> Fingerprint:
    """Of a dense tensor with values, of any shape, dtype and device.

    For a batch of matrices (B, R, C) with mixes h, `ordered` is the sum of h[b, i, j] (2 (b R C + i C + j) + 1), and
    `transposed` the sum of h[b, i, j] (2 (b R C + j R + i) + 1). Both need only the sums of h along each of the three
    dimensions, so that one reading of the values gives all.
    """
    if tensor.numel() == 0:
        return Fingerprint(*("0" * 16,) * 3)
    batch = tensor.detach().reshape(-1, *tensor.shape[-2:]) if tensor.dim() > 1 else tensor.detach().reshape(1, 1, -1)
    _depth, height, width = batch.shape
    sums = _mixed_sums(batch)
    total = int(sums.rows.sum())
    deep, down, across = (_weighted(sums_along) for sums_along in sums)
    before = 2 * height * width * deep + total
    hashes = (total, before + 2 * (width * down + across), before + 2 * (height * across + down))
    return Fingerprint(*(f"{number % _MODULUS:016x}" for number in hashes))


class _MixedSums(NamedTuple):
    """int64, modulo 2**64: over all but one dimension of a batch (B, R, C) of mixes."""

    matrices: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor


def _weighted(sums: torch.Tensor) -> int:
    return int((sums * torch.arange(len(sums), device=sums.device)).sum())


def _mixed_sums(batch: torch.Tensor) -> _MixedSums:
    depth, height, width = batch.shape
    sums = _MixedSums(*(torch.zeros(size, dtype=torch.int64, device=batch.device) for size in batch.shape))
    rows_a_piece = max(1, _PIECE // max(1, width) if batch.device.type == "cpu" else height)
    matrices_a_piece = max(1, rows_a_piece // max(1, height))
    columns_a_piece = _PIECE if batch.device.type == "cpu" else width
    for first, top, left in product(
        range(0, depth, matrices_a_piece), range(0, height, rows_a_piece), range(0, width, columns_a_piece)
    ):
        some, lines = slice(first, first + matrices_a_piece), slice(top, top + rows_a_piece)
        columns = slice(left, left + columns_a_piece)
        mixes = _mix(_bits(batch[some, lines, columns])).to(batch.device)
        in_rows = mixes.sum(2)
        if depth > 1:  # of a single one it has no weight
            sums.matrices[some].add_(in_rows.sum(1))
        sums.rows[lines].add_(in_rows.sum(0) if len(in_rows) > 1 else in_rows[0])
        sums.columns[columns].add_(mixes.sum((0, 1)))
    return sums


def _bits(values: torch.Tensor) -> torch.Tensor:
    """int32 of the same shape, one number a value: of a complex one, those of both parts joined."""
    if values.device.type == "mps":  # no float64 there
        values = values.cpu()
    if values.is_quantized:
        values = values.dequantize()
    if values.is_complex():
        pair = torch.view_as_real(values.resolve_conj())
        return _bits(pair[..., 0]) ^ (_bits(pair[..., 1]) * 3)
    if values.is_floating_point() and values.element_size() <= 4:
        return _bits_of_float32(values.to(torch.float32))
    exact = values.to(torch.float64)
    nearest = exact.to(torch.float32)
    left_out = torch.where(nearest.isfinite(), exact - nearest, torch.where(exact.isfinite(), exact, 0.0)) + 0.0
    words = left_out.view(torch.int64)
    return _bits_of_float32(nearest) + (words * _ODD_64).bitwise_right_shift(32).to(torch.int32)


def _bits_of_float32(values: torch.Tensor) -> torch.Tensor:
    values = values + 0.0
    if values.sum().isnan():  # also where infinities cancel each other: filling in no NaN does no harm
        values.masked_fill_(values.isnan(), torch.nan)
    return values.view(torch.int32)


def _mix(bits: torch.Tensor) -> torch.Tensor:
    """int64: the square of each int32, read as unsigned, after a multiplication and an xor with its upper half. No two
    are mixed alike."""
    words = (bits * _ODD_32).to(torch.int64).bitwise_and_(0xFFFFFFFF)
    words.bitwise_xor_(words >> 16)
    return words.mul_(words)


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
