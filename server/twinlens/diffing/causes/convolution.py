"""Convolutions: the same kernel over another padding, and padding tokens that leak into real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, evenly_spaced, is_floating, residual
from twinlens.diffing.padding import padding_of
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array

_CHANNELS = 6
_MIXERS = re.compile(r"conv|mamba|ssm|scan|rnn|lstm|gru|delta|recurrent", re.I)


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable:
        return
    yield from _leaks(site)
    yield from _padded_otherwise(site)


def _leaks(site: Site) -> Iterator[Finding]:
    """One side zeroes what stands at padding, the other hands it on."""
    if not _mixes_tokens(site):
        return
    both = conformed(site.reference.target(), site.port.target())
    if both is None or both[0].ndim < 3 or residual(both[1], both[0]) <= site.noise.unit:
        return
    ours, theirs = (np.asarray(values, np.float64) for values in both)
    for axis in (1, ours.ndim - 1):
        shape = (ours.shape[0], ours.shape[axis])
        masks = (padding_of(view.side, shape) for view in site.views)
        mask = next((found for found in masks if found is not None and found.shape == shape), None)
        if mask is None:
            continue
        first, second = (np.moveaxis(values, axis, 1) for values in (ours, theirs))
        if residual(second[mask], first[mask]) > site.fit:
            continue
        zeroed = [not values[~mask].any() for values in (first, second)]
        if zeroed[0] != zeroed[1]:
            who = ("reference", "port") if zeroed[0] else ("port", "reference")
            yield Finding(
                "padding-leak",
                f"the {who[0]} sets the states of padding tokens to zero before a convolution or scan, the {who[1]} "
                "hands them on, so that they mix into real tokens",
                residual(second[mask], first[mask]),
                f"{'Multiply the states by the attention mask' if zeroed[0] else 'Do not zero the states'} in "
                f"{site.port.node.class_name}.",
            )
            return


def _mixes_tokens(site: Site) -> bool:
    """Whether what was made goes into a convolution or a scan."""
    paths = (*site.seen_by.pair.port, site.port.call.path)
    nodes = [site.port.side.nodes[path] for path in paths]
    return any(node.kind == "conv" or _MIXERS.search(node.class_name) for node in nodes)


def _padded_otherwise(site: Site) -> Iterator[Finding]:
    kernels = [_kernel(view) for view in site.views]
    if kernels[0] is None or kernels[1] is None or kernels[0].shape != kernels[1].shape:
        return
    if residual(kernels[1], kernels[0]) > 1e-2:
        return
    image = _common_input(site)
    if image is None:
        return
    pads = [
        _padding(view, kernel, image, site.fit)
        for view, kernel in zip(site.views, kernels, strict=True)
        if kernel is not None
    ]
    if pads[0] is None or pads[1] is None or pads[0] == pads[1]:
        return
    said = [f"{', '.join(map(str, pad))}" for pad in pads if pad is not None]
    yield Finding(
        "conv-padding",
        f"the reference pads {said[0]} in front of each dimension, the port {said[1]}",
        site.fit,
        f"Pad as the reference does before {site.port.node.class_name}: SAME with a stride puts the odd element "
        "behind.",
    )


def _kernel(view: View) -> Array | None:
    weight = next(
        (item for item in view.node.parameters if 3 <= len(item.tensor.shape) <= 5 and not item.is_buffer), None
    )
    if weight is None or not view.is_leaf or not view.side.values.has(weight.tensor):
        return None
    return np.asarray(view.side.values.array(weight.tensor), np.float64)


def _bias(view: View) -> Array | None:
    bias = next((item for item in view.node.parameters if len(item.tensor.shape) == 1 and not item.is_buffer), None)
    return (
        None
        if bias is None or not view.side.values.has(bias.tensor)
        else np.asarray(view.side.values.array(bias.tensor), np.float64)
    )


def _common_input(site: Site) -> Array | None:
    """What both convolutions were given, without the padding that only one of them saw: the smaller input."""
    given: list[Array] = []
    for view in site.views:
        tensor = next(
            (slot.tensor for slot in view.call.inputs if slot.tensor is not None and is_floating(slot.tensor)), None
        )
        if tensor is None or not view.side.values.has(tensor):
            return None
        given.append(np.asarray(view.array(tensor), np.float64))
    ours, theirs = given
    if ours.ndim != theirs.ndim:
        return None
    if ours.shape == theirs.shape and residual(theirs, ours) > 1e-2:
        return _without_border(ours, theirs)
    return ours if ours.size <= theirs.size else theirs


def _without_border(ours: Array, theirs: Array) -> Array | None:
    """Of two padded inputs of one size: the image that stands at other places in them, without zeros around it."""
    inner = []
    for values in (ours, theirs):
        filled = np.argwhere(np.abs(values).max((0, 1)) > 0)
        if not len(filled):
            return None
        low, high = filled.min(0), filled.max(0) + 1
        inner.append(values[(..., *(slice(a, b) for a, b in zip(low, high, strict=True)))])
    return inner[0] if inner[0].shape == inner[1].shape and residual(inner[1], inner[0]) <= 1e-2 else None


def _padding(view: View, kernel: Array, image: Array, fit: float) -> tuple[int, ...] | None:
    """How many zeros in front of `image` in each dimension explain the output."""
    output = np.asarray(view.target(), np.float64)
    sizes, spatial, out_sizes = kernel.shape[2:], image.shape[2:], output.shape[2:]
    if output.ndim != image.ndim or len(sizes) != len(spatial):
        return None
    bias = _bias(view)
    strides = [max(1, round(size / out)) for size, out in zip(spatial, out_sizes, strict=True)]
    channels = evenly_spaced(kernel.shape[0], _CHANNELS)
    wanted = output[:1, channels]
    for front in product(*(range(size) for size in sizes)):
        made = _convolved(image[:1], kernel, channels, front, strides, out_sizes, output.shape[1])
        if made is None:
            continue
        if bias is not None:
            made = made + bias[channels].reshape(1, -1, *(1,) * len(sizes))
        if residual(made, wanted) <= fit:
            return front
    return None


def _convolved(
    image: Array,
    kernel: Array,
    channels: Array,
    front: tuple[int, ...],
    strides: list[int],
    out_sizes: tuple[int, ...],
    out_channels: int,
) -> Array | None:
    """Some output channels of a cross-correlation over `image` with `front` zeros before each dimension."""
    groups = image.shape[1] // kernel.shape[1]
    sizes = kernel.shape[2:]
    needed = [(out - 1) * stride + size for out, stride, size in zip(out_sizes, strides, sizes, strict=True)]
    behind = [max(0, total - before - size) for total, before, size in zip(needed, front, image.shape[2:], strict=True)]
    padded = np.pad(image, ((0, 0), (0, 0), *zip(front, behind, strict=True)))
    result = np.zeros((len(image), len(channels), *out_sizes))
    for place, channel in enumerate(channels):
        group = channel * groups // out_channels
        own = padded[:, group * kernel.shape[1] : (group + 1) * kernel.shape[1]]
        for offset in product(*(range(size) for size in sizes)):
            window = tuple(
                slice(start, start + (out - 1) * stride + 1, stride)
                for start, out, stride in zip(offset, out_sizes, strides, strict=True)
            )
            taken = own[(slice(None), slice(None), *window)]
            if taken.shape[2:] != tuple(out_sizes):
                return None
            result[:, place] += np.einsum("bc...,c->b...", taken, kernel[(channel, slice(None), *offset)])
    return result
