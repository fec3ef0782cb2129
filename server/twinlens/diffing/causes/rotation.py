"""Turning heads by a rotary table, in every layout that code is known to use."""

from __future__ import annotations

from typing import Literal

import numpy as np

from twinlens.diffing.causes.rotary_tables import Table
from twinlens.diffing.values import Array

Layout = Literal["none", "halves", "pairs", "halves by pairs", "pairs by halves"]
"""How dimensions are paired; the last two pair them one way and lay out the table's angles the other way."""
Turn = Literal["both", "query alone", "key alone", "backwards"]
"""What the table turns: both queries and keys, one of them, or both the other way round."""

PLAIN: tuple[Layout, ...] = ("halves", "pairs")
MIXED: tuple[Layout, ...] = ("halves by pairs", "pairs by halves")
TURNS: tuple[Turn, ...] = ("both", "query alone", "key alone", "backwards")


def rotated(heads: Array, layout: Layout, table: Table | None, batch: int, places: Array | None = None) -> Array | None:
    """(places, heads, size) turned by the table, at the positions `places` or from 0 on; None where the table is too
    wide or too short for it."""
    if layout == "none" or table is None:
        return heads
    cosine, sine = table.at(batch)
    pairs = cosine.shape[-1]
    at = np.arange(len(heads)) if places is None else places
    if 2 * pairs > heads.shape[-1] or len(cosine) <= at.max():
        return None
    c, s = cosine[at][:, None], sine[at][:, None]
    columns = np.arange(2 * pairs)
    is_halves = layout.startswith("halves")
    first = columns[:pairs] if is_halves else columns[::2]
    second = columns[pairs:] if is_halves else columns[1::2]
    # By column of a head: the pair whose angle it is turned by.
    angle = columns % pairs if layout in ("halves", "pairs by halves") else columns // 2
    turned = np.array(heads)
    a, b = heads[..., first], heads[..., second]
    turned[..., first] = a * c[..., angle[first]] - b * s[..., angle[first]]
    turned[..., second] = b * c[..., angle[second]] + a * s[..., angle[second]]
    return turned
