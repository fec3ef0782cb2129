"""Masks: which keys a query may look at, on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.attention_view import Attention
from twinlens.diffing.causes.evidence import Finding, Site
from twinlens.diffing.values import Array

_MOST = 0.5
"""Share of the queries."""


@dataclass(frozen=True, slots=True)
class _Masks:
    """Blocked pairs, (B, Q, K). `ahead` is key minus query place."""

    ours: Array
    theirs: Array
    ahead: Array
    kept: Array
    """(B, Q): queries that see something on both sides."""


def find_mask(site: Site, ours: Attention, theirs: Attention) -> Iterator[Finding]:
    """What differs in what is blocked; nothing where both block the same."""
    if ours.scores.shape != theirs.scores.shape:
        return
    first, second = np.asarray(ours.blocked.all(1)), np.asarray(theirs.blocked.all(1))
    places = np.asarray(ours.queries) + ours.scores.shape[-1] - ours.query_count
    found = compare_blocked(site, first, second, places)
    if found is not None:
        yield found
        return
    empty = np.asarray(first.all(-1)) | np.asarray(second.all(-1))
    yield from _empty_rows(site, ours, theirs, empty | _broken_rows(ours) | _broken_rows(theirs))


def compare_blocked(site: Site, first: Array, second: Array, places: Array) -> Finding | None:
    """Of two masks (batch, queries, keys), true where blocked; `places` are those of the queries among the keys."""
    kept = ~(np.asarray(first.all(-1)) | np.asarray(second.all(-1)))
    if (first == second)[kept].all():
        return None
    ahead = np.arange(first.shape[-1])[None, :] - places[:, None]
    return _named(site, _Masks(first, second, ahead, kept))


def _broken_rows(attention: Attention) -> Array:
    return np.asarray(np.isnan(attention.probabilities).any((1, 3)))


def _named(site: Site, masks: _Masks) -> Finding:
    where = f"in {site.port.node.class_name}"
    ahead = np.broadcast_to(masks.ahead, masks.ours.shape)[masks.kept]
    ours, theirs = masks.ours[masks.kept], masks.theirs[masks.kept]
    if (ours != theirs).all():
        return Finding(
            "mask-missing",
            "the port looks at the keys that the reference blocks, and blocks those that it looks at",
            0.0,
            f"Invert the mask {where}: true and 1 mean the opposite on the two sides.",
        )
    own, their_own = (float(mask[ahead == 0].mean()) for mask in (ours, theirs))
    if abs(own - their_own) > _MOST:
        who = ("port", "reference") if their_own > own else ("reference", "port")
        return Finding(
            "mask-missing",
            f"the {who[0]} blocks each query's own key, the {who[1]} does not",
            0.0,
            f"{'Let a query look at its own key' if who[0] == 'port' else 'Block the own key'} {where} (triu(1), not "
            "triu(0)).",
        )
    causal, their_causal = (_blocks_future(mask, ahead) for mask in (ours, theirs))
    if causal != their_causal:
        said = ("blocks", "lets a query look at") if causal else ("lets a query look at", "blocks")
        return Finding(
            "mask-missing",
            f"the reference {said[0]} keys ahead of a query, the port {said[1]} them",
            0.0,
            f"{'Pass the causal mask' if causal else 'Do not mask the future'} {where}.",
        )
    window, their_window = (_window(mask, ahead) for mask in (ours, theirs))
    if window != their_window:
        return _windows(site, window, their_window, where)
    columns, their_columns = (_blocked_columns(mask, masks, causal) for mask in (masks.ours, masks.theirs))
    if not np.array_equal(columns, their_columns):
        more = int(np.count_nonzero(columns & ~their_columns)), int(np.count_nonzero(their_columns & ~columns))
        who = ("reference", "port") if more[0] else ("port", "reference")
        return Finding(
            "mask-missing",
            f"the {who[0]} blocks {max(more)} keys for every query (padding), the {who[1]} looks at them",
            0.0,
            f"{'Apply' if more[0] else 'Leave out'} the padding mask {where}.",
        )
    share = float(np.mean(ours != theirs))
    return Finding(
        "mask-missing",
        f"the two sides block other keys: {share:.1%} of all pairs of query and key",
        0.0,
        f"Build the mask as the reference does {where}.",
    )


def _windows(site: Site, window: int | None, their_window: int | None, where: str) -> Finding:
    del site
    if window is None or their_window is None:
        known = window if window is not None else their_window
        who = ("reference", "port") if window is not None else ("port", "reference")
        return Finding(
            "mask-missing" if window is not None else "sliding-window",
            f"the {who[0]} looks back at {known} keys, the query's own among them; the {who[1]} at all",
            0.0,
            f"{'Pass the sliding window' if window is not None else 'Do not pass a sliding window'} {where}.",
        )
    return Finding(
        "sliding-window",
        f"the reference looks back at {window} keys, the query's own among them; the port at {their_window}",
        0.0,
        f"Use a window of {window} as the reference counts it {where}"
        f"{' (off by one)' if abs(window - their_window) == 1 else ''}.",
    )


def _blocks_future(mask: Array, ahead: Array) -> bool:
    future = ahead > 0
    return bool(mask[future].all()) if future.any() else True


def _window(mask: Array, ahead: Array) -> int | None:
    """How many keys up to its own a query sees; None where nothing is blocked for being too far back."""
    open_pairs = ~mask & (ahead <= 0)
    if not open_pairs.any():
        return None
    seen = int(-ahead[open_pairs].min()) + 1
    beyond = ahead <= -seen
    return seen if beyond.any() and mask[beyond].all() else None


def _blocked_columns(mask: Array, masks: _Masks, causal: bool) -> Array:
    """(B, K): keys that no query sees that could."""
    could = np.broadcast_to(masks.ahead <= 0 if causal else True, mask.shape) & masks.kept[..., None]
    return np.asarray((mask | ~could).all(-2) & could.any(-2))


def _empty_rows(site: Site, ours: Attention, theirs: Attention, rows: Array) -> Iterator[Finding]:
    """Queries that may look at nothing: NaN, zero, or the mean of all."""
    if not rows.any():
        return
    said = [_what_rows_hold(attention, rows) for attention in (ours, theirs)]
    if said[0] != said[1]:
        yield Finding(
            "fully-masked-rows",
            f"{int(rows.sum())} queries may look at no key; there the reference holds {said[0]}, the port {said[1]}",
            0.0,
            f"In {site.port.node.class_name}, fill masked scores with torch.finfo(dtype).min, or leave such rows out.",
        )


def _what_rows_hold(attention: Attention, rows: Array) -> str:
    probabilities = np.moveaxis(attention.probabilities, 1, 2)[rows]
    if np.isnan(probabilities).any():
        return "NaN"
    if attention.output is not None:
        values = np.moveaxis(attention.output, 1, 2)[rows]
        if np.isnan(values).any():
            return "NaN"
        if not values.any():
            return "zeros"
    if not probabilities.any():
        return "zeros" if attention.output is None else "some mean of the values"
    return "some mean of the values"
