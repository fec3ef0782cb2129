"""Pooling: which token of a sequence, or which mean of its tokens, stands for all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from twinlens.diffing.causes import calls
from twinlens.diffing.causes.evidence import MOST_SEEN, Finding, Site, View, residual
from twinlens.diffing.padding import padding_of
from twinlens.diffing.values import Array
from twinlens.tracing.record import Tensor

_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class _Pooled:
    words: str
    label: str
    source: Tensor
    residual: float


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable or len(site.port.tensor.shape) < 2:
        return
    ours, theirs = (_pooled(view, site.fit) for view in site.views)
    if ours is None or theirs is None:
        return
    if ours.words == theirs.words:
        views = (replace(view, tensor=made.source) for view, made in zip(site.views, (ours, theirs), strict=True))
        reference, port = views
        yield from calls.find(replace(site, reference=reference, port=port))
        return
    yield Finding(
        "pooling",
        f"the reference takes {ours.words} of {ours.label}, the port {theirs.words} of {theirs.label}",
        max(ours.residual, theirs.residual),
        f"Take {ours.words} in {site.port.node.class_name}.",
    )


def _pooled(view: View, fit: float) -> _Pooled | None:
    """How the tensor (batch, width) follows from the last one (batch, tokens, width) that gives it."""
    target = np.asarray(view.target(), np.float64)
    width = target.shape[-1]
    target = target.reshape(-1, width)
    for item in reversed(view.seen[-MOST_SEEN:]):
        shape = item.tensor.shape
        if len(shape) != 3 or shape[-1] != width or shape[0] != len(target) or not 1 < shape[1] <= _LONGEST:
            continue
        values = np.asarray(view.array(item.tensor), np.float64)
        for words, made in _ways(values, padding_of(view.side, shape[:2])):
            left = residual(made, target)
            if left <= fit:
                return _Pooled(words, item.label, item.tensor, left)
    return None


def _ways(values: Array, mask: Array | None) -> Iterator[tuple[str, Array]]:
    length = values.shape[1]
    for place in (0, length - 1, *range(1, length - 1)):
        yield "the last token" if place == length - 1 else f"token {place}", values[:, place]
    yield "the mean of all tokens", values.mean(1)
    yield "the sum of all tokens", values.sum(1)
    yield "the largest of all tokens", values.max(1)
    if mask is None:
        return
    kept = mask.astype(bool)
    last = length - 1 - np.argmax(kept[:, ::-1], 1)
    yield "the last token that is no padding", values[np.arange(len(values)), last]
    weights = kept[..., None].astype(np.float64)
    yield "the mean of the tokens that are no padding", (values * weights).sum(1) / np.maximum(weights.sum(1), 1)
    yield "the largest of the tokens that are no padding", np.where(kept[..., None], values, -math.inf).max(1)
