"""The right values in other places: tokens in another order, other rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, parameters_of, residual, short
from twinlens.diffing.compare import is_whole
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array

_MOST_TOKENS = 2048
_SHOWN = 4


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable or not site.is_clean:
        return
    both = conformed(*(view.target() for view in site.views))
    if both is None:
        return
    if all(is_whole(view.tensor) for view in site.views):
        yield from _other_rows(site, *both)
    elif min(values.ndim for values in both) > 1:
        ours, theirs = (np.asarray(values, np.float64) for values in both)
        yield from _other_order(site, ours, theirs)


def _other_order(site: Site, ours: Array, theirs: Array) -> Iterator[Finding]:
    """Over (…, tokens, width): the port's rows are the reference's, permuted before or after something was added."""
    count, width = ours.shape[-2:]
    if ours.ndim < 3 or not 1 < count <= _MOST_TOKENS or width < 2:
        return
    for added in ((None, None), *_added_on_both(site, ours.shape)):
        first, second = (
            (values if term is None else values - term).reshape(-1, count, width)
            for values, term in zip((ours, theirs), added, strict=True)
        )
        order = _order(first[0], second[0])
        if order is None:
            continue
        left = residual(first[:, order], second)
        if left <= site.fit:
            yield Finding(
                "token-order",
                f"the port's tokens are the reference's in another order: {_described(order)}",
                left,
                f"Put the tokens in the reference's order in {site.port.node.class_name}.",
            )
            return


def _added_on_both(site: Site, shape: tuple[int, ...]) -> Iterator[tuple[Array, Array]]:
    """What both frames can add that has a row a token: parameters, and what paired modules returned."""
    parameters = (parameters_of(view).values() for view in site.views)
    for own, other in product(*parameters):
        if own.shape == other.shape and own.shape[-2:] == shape[-2:] and _may_be_added(own, shape):
            yield own, other
    known = {site.identity(site.port, item.tensor): item for item in site.port.seen}
    for item in site.reference.seen:
        partner = known.get(site.identity(site.reference, item.tensor))
        if partner is not None and item.call is not None and item.tensor.shape[-2:] == shape[-2:]:
            terms = site.reference.array(item.tensor), site.port.array(partner.tensor)
            if all(_may_be_added(term, shape) for term in terms):
                yield terms


def _may_be_added(term: Array, shape: tuple[int, ...]) -> bool:
    return term.ndim <= len(shape) and all(a in (1, b) for a, b in zip(term.shape[::-1], shape[::-1], strict=False))


def _order(ours: Array, theirs: Array) -> Array | None:
    """By row of `theirs` (tokens, width): the row of `ours` nearest to it; None where that is no other order of all."""
    distances = (theirs**2).sum(1)[:, None] + (ours**2).sum(1)[None] - 2 * theirs @ ours.T
    if not np.isfinite(distances).all():
        return None
    order = distances.argmin(1)
    plain = np.arange(len(order))
    return order if (np.sort(order) == plain).all() and (order != plain).any() else None


def _described(order: Array) -> str:
    count = len(order)
    plain = np.arange(count)
    if (order == plain[::-1]).all():
        return "reversed"
    if (order == np.roll(plain, -1)).all():
        return "the reference's first token comes last"
    if (order == np.roll(plain, 1)).all():
        return "the reference's last token comes first"
    for before in (0, 1):
        inner = order[before:] - before
        for height in range(2, count - before):
            if (count - before) % height or (before and order[0]):
                continue
            grid = plain[: count - before].reshape(height, -1)
            if grid.shape[1] > 1 and (inner == grid.T.ravel()).all():
                return f"a grid of {height} rows is read column by column"
    shown = ", ".join(map(str, order[:_SHOWN].tolist()))
    return f"it begins with the reference's tokens {shown}{', …' if count > _SHOWN else ''}"


def _other_rows(site: Site, ours: Array, theirs: Array) -> Iterator[Finding]:
    """Whole numbers that a table is asked for."""
    call = site.seen_by.port[0]
    if site.point.side != "inputs" or site.comparison.port.node_of(call).kind != "embedding":
        return
    path = short(site.comparison.port.trace.calls[call].path)
    if not (ours != theirs).any():
        return
    if ours.ndim > 1 and ours.shape[-1] == ours.shape[-2] and (np.swapaxes(ours, -1, -2) == theirs).all():
        how = "with rows and columns exchanged (query and key, where it is a distance of the two)"
    else:
        place = tuple(int(index) for index in np.argwhere(ours != theirs)[0])
        how = f"other ones from {list(place)} on: row {theirs[place]}, in the reference {ours[place]}"
    yield Finding(
        "other-rows",
        f"the rows that {path} is asked for are the reference's {how}"
        if how.startswith("with")
        else f"the port asks {path} for {how}",
        0.0,
        f"Compute the indices for {path} as the reference does in {site.port.node.class_name}.",
    )
