"""Bring two arrays that hold the same thing in another order of dimensions into one shape."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from twinlens.diffing.compare import relative_error
from twinlens.diffing.mapfile import Transform
from twinlens.diffing.values import Array

_SAMPLED = 200_000
_MOST_DIMENSIONS = 5


def conformed(reference: Array, port: Array) -> tuple[Array, Array] | None:
    """Both in one shape: as they are, without dimensions of size 1, flattened, broadcast, or the port's dimensions
    permuted (the permutation that lies nearest). None where no such way is open."""
    if reference.shape == port.shape:
        return reference, port
    if _squeezed(reference.shape) == _squeezed(port.shape):
        return reference.reshape(port.shape), port
    if reference.size == port.size:
        permuted = _permuted(reference.reshape(_squeezed(reference.shape)), port.reshape(_squeezed(port.shape)))
        if reference.ndim and port.ndim and reference.shape[-1] == port.shape[-1]:
            flat = reference.reshape(port.shape), port
            return flat if permuted is None else min(flat, permuted, key=lambda both: _sampled_error(*both))
        if permuted is not None:
            return permuted
        if _merges(reference.shape, port.shape):
            return reference.reshape(port.shape), port
        return None
    try:
        shape = np.broadcast_shapes(reference.shape, port.shape)
    except ValueError:
        return None
    if math.prod(shape) != max(reference.size, port.size):
        return None
    return np.broadcast_to(reference, shape), np.broadcast_to(port, shape)


def may_conform(reference: tuple[int, ...], port: tuple[int, ...]) -> bool:
    """Whether `conformed` may find a way for arrays of these shapes."""
    if reference == port:
        return True
    if math.prod(reference) == math.prod(port):
        ours, theirs = _squeezed(reference), _squeezed(port)
        return ours == theirs or ours[-1:] == theirs[-1:] or sorted(ours) == sorted(theirs) or _merges(reference, port)
    try:
        shape = np.broadcast_shapes(reference, port)
    except ValueError:
        return False
    return math.prod(shape) == max(math.prod(reference), math.prod(port))


def transformed(reference: Array, transform: Transform) -> Array:
    """What the user's map file says makes the port's array of the reference's. Raises `ValueError` where it cannot."""
    if transform.transpose:
        reference = np.swapaxes(reference, *transform.transpose)
    if transform.permute:
        reference = np.transpose(reference, transform.permute)
    if transform.reshape:
        reference = reference.reshape(transform.reshape)
    return reference


def joined(parts: list[Array], transform: Transform) -> Array:
    """Several arrays as one: one after the other along `dim`, or their entries in turn. Raises `ValueError`."""
    if transform.op == "interleave":
        dim = transform.dim % parts[0].ndim
        stacked = np.stack(parts, dim + 1)
        return stacked.reshape(*stacked.shape[:dim], -1, *stacked.shape[dim + 2 :])
    return np.concatenate(parts, transform.dim)


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _merges(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether the shorter of two shapes joins neighbouring dimensions of the longer: [2, 5, 4, 8] and [2, 5, 32]."""
    short, long = sorted((_squeezed(shape), _squeezed(other)), key=len)
    place = 0
    for size in short:
        product = 1
        while place < len(long) and product < size:
            product *= long[place]
            place += 1
        if product != size:
            return False
    return place == len(long)


def _permuted(reference: Array, port: Array) -> tuple[Array, Array] | None:
    if sorted(reference.shape) != sorted(port.shape) or reference.ndim > _MOST_DIMENSIONS:
        return None
    orders = [
        order
        for order in permutations(range(port.ndim))
        if tuple(port.shape[axis] for axis in order) == reference.shape and order != tuple(range(port.ndim))
    ]
    if not orders:
        return None
    best = min(orders, key=lambda order: _sampled_error(reference, np.transpose(port, order)))
    return reference, np.ascontiguousarray(np.transpose(port, best))


def _sampled_error(reference: Array, port: Array) -> float:
    step = max(1, reference.size // _SAMPLED)
    return relative_error(port.reshape(-1)[::step], reference.reshape(-1)[::step])
