"""Hashes of a tensor's values that survive, or name, a transposition.

Each value's float64 bits are mixed to 64 bits (the finaliser of SplitMix64, Steele, Lea, Flood 2014); `values` is the
sum of the mixes, `ordered` the sum of each mix times an odd number that grows with its place. All arithmetic is
modulo 2**64, which is what torch's int64 does. -0.0 counts as 0.0, every NaN as the same NaN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import torch

from twinlens.tracing.record import Fingerprint

_PIECE = 32768
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
    for first in range(0, depth, matrices_a_piece):
        for top in range(0, height, rows_a_piece):
            some, lines = slice(first, first + matrices_a_piece), slice(top, top + rows_a_piece)
            mixes = _mix(_bits(batch[some, lines])).to(batch.device)
            in_rows = mixes.sum(2)
            sums.matrices[some] += in_rows.sum(1)
            sums.rows[lines] += in_rows.sum(0)
            sums.columns.add_(mixes.sum((0, 1)))
    return sums


def _bits(values: torch.Tensor) -> torch.Tensor:
    """int64 of the same shape: each value's bits as float64; of a complex one, those of both parts joined."""
    if values.is_quantized:
        values = values.dequantize()
    if values.is_complex():
        pair = torch.view_as_real(values.resolve_conj())
        return _bits(pair[..., 0]) ^ (_bits(pair[..., 1]) * 3)
    if values.device.type == "mps":  # no float64 there
        values = values.cpu()
    exact = values.to(torch.float64) + 0.0
    return exact.masked_fill_(exact.isnan(), torch.nan).view(torch.int64)


def _mix(bits: torch.Tensor) -> torch.Tensor:
    """SplitMix64's finaliser, in place. torch shifts int64 with its sign; the mask makes the shift a logical one."""
    bits.bitwise_xor_((bits >> 30).bitwise_and_((1 << 34) - 1)).mul_(_signed(0xBF58476D1CE4E5B9))
    bits.bitwise_xor_((bits >> 27).bitwise_and_((1 << 37) - 1)).mul_(_signed(0x94D049BB133111EB))
    return bits.bitwise_xor_((bits >> 31).bitwise_and_((1 << 33) - 1))


def _signed(number: int) -> int:
    return number - _MODULUS if number >= _MODULUS >> 1 else number


def combined_hash(parts: Iterable[str]) -> str:
    """16 hex digits over `parts` in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()
