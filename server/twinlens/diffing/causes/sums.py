"""Sums: which recorded tensors a frame adds up, with which factors. Residual topology, embedding scale, soft-caps.

A tensor is described by the fewest of those that the code could see, each times a least-squares factor, that give it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from twinlens.diffing.causes.caps import find_cap
from twinlens.diffing.causes.evidence import (
    MOST_SEEN,
    Finding,
    Identity,
    Seen,
    Site,
    View,
    is_floating,
    nice,
    parameters_of,
    residual,
    sampled,
    spread,
)
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array

_MOST_TERMS = 4
_MOST_GAINS = 2
_SAME_FACTOR = 2e-3
_TOLD_APART = 3.0
"""How many times worse than a side's own sum the other's must describe it."""


@dataclass(frozen=True, slots=True)
class _Term:
    label: str
    identity: Identity
    factor: float
    seen: Seen

    def __str__(self) -> str:
        if abs(self.factor - 1) < _SAME_FACTOR:
            return self.label
        return f"{nice(self.factor)} × {self.label}"


@dataclass(frozen=True, slots=True)
class _Sum:
    terms: tuple[_Term, ...]
    residual: float

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))

    @property
    def factors(self) -> dict[Identity, float]:
        return {term.identity: term.factor for term in self.terms}


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable or all(view.is_leaf for view in site.views):
        return
    added = list(_added_on_one_side(site)) if site.is_clean else []
    if added:
        yield from added
        return
    sums = [_sum_of(view, site) for view in site.views]
    if sums[0] is not None and sums[1] is not None:
        yield from _differing_sums(site, sums[0], sums[1])
        return
    yield from find_cap(site)


def _added_on_one_side(site: Site) -> Iterator[Finding]:
    """The two sides differ by one tensor or parameter that one of them adds."""
    both = conformed(site.reference.target(), site.port.target())
    if both is None:
        return
    ours, theirs = (np.asarray(values, np.float64) for values in both)
    gap = ours - theirs
    size, whole = float(np.linalg.norm(gap)), float(np.linalg.norm(ours))
    if not math.isfinite(size) or size <= site.fit * whole:
        return
    for view, sign in ((site.reference, 1.0), (site.port, -1.0)):
        for name, values in _addends(view, gap.shape):
            left = float(np.linalg.norm(gap - sign * values))
            if left <= max(site.fit * whole, 1e-6 * size) and left < 0.05 * size:
                who = ("reference", "port") if sign > 0 else ("port", "reference")
                yield Finding(
                    "residual-topology",
                    f"the {who[0]} adds {name}, the {who[1]} does not",
                    left / whole,
                    f"{'Add' if sign > 0 else 'Leave out'} {name} in {site.port.node.class_name}.",
                )
                return


def _addends(view: View, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    for name, values in parameters_of(view).items():
        if values.ndim > 1 and np.any(values):
            try:
                yield name, np.broadcast_to(np.asarray(values, np.float64), shape)
            except ValueError:
                continue
    for item in view.seen[-MOST_SEEN:]:
        if item.tensor.shape[-1:] == shape[-1:]:
            values = spread(np.asarray(view.array(item.tensor), np.float64), shape)
            if values is not None and np.any(values):
                yield item.label, values


def _roles(site: Site, view: View, found: _Sum) -> dict[Identity, float] | None:
    """The factors by what the terms are to the frame's code: its n-th argument, or what a module of it returned; None
    where one is neither."""
    roles: dict[Identity, float] = {}
    for term in found.terms:
        role = _role(site, view, term.seen)
        if role is None:
            return None
        roles[role._replace(part=f"{role.part} {term.identity.part}")] = term.factor
    return roles


def _role(site: Site, view: View, seen: Seen) -> Identity | None:
    if seen.call is not None:
        path = view.side.trace.calls[seen.call].path
        known = site.comparison.alignment.reference_of(path) if view is site.port else path
        return None if known is None else Identity(0, known)
    given = [slot.tensor.id for slot in view.call.inputs if slot.tensor is not None and is_floating(slot.tensor)]
    return Identity(1 + given.index(seen.tensor.id)) if seen.tensor.id in given else None


def _differing_sums(site: Site, ours: _Sum, theirs: _Sum) -> Iterator[Finding]:
    left = max(ours.residual, theirs.residual)
    first, second = ours.factors, theirs.factors
    if _also_fits(site.port, site, ours, theirs) or _also_fits(site.reference, site, theirs, ours):
        return
    roles = _roles(site, site.reference, ours), _roles(site, site.port, theirs)
    if roles[0] is not None and roles[1] is not None and roles[0].keys() == roles[1].keys():
        first, second = roles[0], roles[1]
    if first.keys() == second.keys():
        factors = [(first[key], second[key]) for key in first]
        if all(abs(a - b) <= _SAME_FACTOR * max(abs(a), abs(b)) for a, b in factors):
            return
        if len(ours.terms) == 1 and _is_embedding(site.reference, ours.terms[0]):
            yield _scaled_embedding(site, ours.terms[0].factor, theirs.terms[0].factor, left)
            return
    yield Finding(
        "residual-topology",
        f"the reference computes {ours}, the port {theirs}",
        left,
        f"In {site.port.node.class_name}, compute {ours}.",
    )


def _also_fits(view: View, site: Site, others: _Sum, own: _Sum) -> bool:
    """Whether the other side's sum describes this side nearly as well as its own."""
    target = view.target()
    by_identity = {identity: values for _seen, identity, values in _candidates(view, target, site)}
    factors = others.factors
    if not factors.keys() <= by_identity.keys():
        return False
    prediction = sum(factor * by_identity[identity] for identity, factor in factors.items())
    return residual(np.asarray(prediction), sampled(target)) <= max(_TOLD_APART * own.residual, 1e-6)


def _scaled_embedding(site: Site, ours: float, theirs: float, left: float) -> Finding:
    width = site.reference.tensor.shape[-1]
    root = f" (the root of the width {width})"
    said = [f"{nice(value)}{root if abs(value - math.sqrt(width)) < 0.01 * value else ''}" for value in (ours, theirs)]
    return Finding(
        "embedding-scale",
        f"the reference multiplies the embedding by {said[0]}, the port by {said[1]}",
        left,
        f"Multiply by {nice(ours)} in {site.port.node.class_name}.",
    )


def _is_embedding(view: View, term: _Term) -> bool:
    call = term.seen.call
    return call is not None and view.side.node_of(call).kind == "embedding"


def _sum_of(view: View, site: Site) -> _Sum | None:
    target = view.target()
    t = sampled(target)
    if not np.isfinite(t).all() or not np.any(t):
        return None
    candidates = _candidates(view, target, site)
    for count in range(1, _MOST_TERMS + 1):
        best: _Sum | None = None
        for some in combinations(candidates, count):
            found = _fitted(t, some)
            if found is not None and found.residual <= site.fit and (best is None or _order(found) < _order(best)):
                best = found
        if best is not None:
            return best
    return None


def _order(found: _Sum) -> tuple[bool, float]:
    """Sums of factor 1 throughout come first: among collinear tensors they are what a person wrote."""
    return any(abs(term.factor - 1) > _SAME_FACTOR for term in found.terms), found.residual


def _candidates(view: View, target: Array, site: Site) -> list[tuple[Seen, Identity, Array]]:
    found: list[tuple[Seen, Identity, Array]] = []
    gains = [(name, values) for name, values in parameters_of(view).items() if values.shape == target.shape[-1:]]
    for item in view.seen[-MOST_SEEN:]:
        array = spread(view.array(item.tensor), target.shape) if item.tensor.shape[-1:] == target.shape[-1:] else None
        if array is None:
            continue
        values = sampled(array)
        if not np.isfinite(values).all() or not np.any(values):
            continue
        identity = site.identity(view, item.tensor)
        found.append((item, identity, values))
        if item.call is not None:
            for name, gain in gains[:_MOST_GAINS]:
                scaled = replace(item, label=f"{name} × {item.label}")
                found.append((scaled, identity._replace(part="scaled"), sampled(array * gain)))
    return found


def _fitted(target: Array, some: tuple[tuple[Seen, Identity, Array], ...]) -> _Sum | None:
    matrix = np.stack([values for _seen, _identity, values in some], 1)
    gram = matrix.T @ matrix
    if np.linalg.cond(gram) > 1e12:
        return None
    factors = np.linalg.solve(gram, matrix.T @ target)
    if np.any(np.abs(factors) < 1e-2):
        return None
    terms = tuple(
        _Term(seen.label, identity, float(factor), seen)
        for (seen, identity, _values), factor in zip(some, factors, strict=True)
    )
    return _Sum(terms, residual(matrix @ factors, target))
