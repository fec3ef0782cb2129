"""Activations: which function of x alone a module or a gated product applies, and to which of two halves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from twinlens.diffing.causes import clamped_products
from twinlens.diffing.causes.activation_formulas import ACTIVATIONS
from twinlens.diffing.causes.activation_parts import SMALL_SAMPLE, Part, parts_of, sampled_to
from twinlens.diffing.causes.evidence import Finding, Identity, Seen, Site, View, residual
from twinlens.diffing.causes.gate_roles import other_roles
from twinlens.diffing.causes.gated_forms import Form, form_of
from twinlens.diffing.columns import rounded_to
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array

_LOW_PRECISION = ("bfloat16", "float16")
_LARGE_SAMPLE = 100_000
_MOST_ADDENDS = 6
_NOTHING = list(ACTIVATIONS).index("nothing")
_MOST_MISSES = 0.015
"""Share of elements that a formula may not give bit for bit, and by how much another must be worse."""
_TOLD_APART = 3.0
"""How many times better than the other side's function a function must describe a side."""


@dataclass(frozen=True, slots=True)
class _Product:
    """activation(gate) * value, or activation(gate) alone."""

    gate: Part
    value: Part | None
    error: Mapping[str, float]
    """By activation: the residual."""
    differing: Mapping[str, float]
    """By activation, in low precision: the share of elements that it does not give bit for bit."""

    @property
    def best(self) -> str:
        return min(self.error, key=lambda name: self.error[name])


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable or len(site.port.tensor.shape) < 2:
        return
    views = _lifted(site)
    parts = tuple(list(parts_of(view, view.tensor.shape, site)) for view in views)
    found = list(_of_whole(site, views, parts)) or list(clamped_products.find(site, views, parts))
    yield from found or _of_rest(site, parts)


def _of_rest(site: Site, parts: Sequence[list[Part]]) -> Iterator[Finding]:
    """Of what both sides add to the same tensor, such as the stream that a block is given."""
    ours, theirs = ({site.identity(view, seen.tensor): seen for seen in _addends(view)} for view in site.views)
    for identity in [identity for identity in ours if identity in theirs]:
        first, second = ours[identity], theirs[identity]
        rest = replace(
            site,
            reference=replace(site.reference, less=first.tensor),
            port=replace(site.port, less=second.tensor),
        )
        found = [
            replace(finding, message=f"of what is added to {second.label}, {finding.message}")
            for finding in _of_whole(rest, _lifted(rest), parts)
        ]
        if found:
            yield from found
            return


def _addends(view: View) -> list[Seen]:
    size = math.prod(view.tensor.shape)
    return [seen for seen in view.seen[-_MOST_ADDENDS:] if math.prod(seen.tensor.shape) == size]


def _of_whole(site: Site, views: tuple[View, View], parts: Sequence[list[Part]]) -> Iterator[Finding]:
    ours, theirs = (_best_product(view, own, site) for view, own in zip(views, parts, strict=True))
    otherwise = _made_otherwise(site, views, parts, (ours, theirs))
    if otherwise is not None:
        yield otherwise
    if ours is None and theirs is None and site.is_clean:
        yield from _of_an_unseen_product(site, parts[1])
    if ours is None or theirs is None or otherwise is not None:
        return
    names = _told_apart(ours, theirs)
    if ours.value is not None and theirs.value is not None:
        left = max(ours.error[ours.best], theirs.error[theirs.best])
        factors = (ours.gate, ours.value), (theirs.gate, theirs.value)
        roles = other_roles(site, *factors, names or (ours.best, ours.best), left)
        if roles is not None:
            yield roles
            return
    if names is not None:
        yield Finding(
            "activation-variant",
            f"the reference applies {names[0]}, the port {names[1]}",
            theirs.error[names[1]],
            f"Use {names[0]} in {site.port.node.class_name}.",
        )


def _lifted(site: Site) -> tuple[View, View]:
    """Where one side's activation is a module and the other's is not: the code around the module."""
    is_module = [view.is_leaf and view.node.kind == "activation" for view in site.views]
    if is_module[0] == is_module[1]:
        return site.views
    ours, theirs = (_around(view) if is_one else view for view, is_one in zip(site.views, is_module, strict=True))
    return ours, theirs


def _around(view: View) -> View:
    parent = view.call.parent
    return view if parent is None else replace(view, frame=parent, time=view.side.flow.left[view.frame])


def _made_otherwise(
    site: Site,
    views: tuple[View, View],
    parts: Sequence[list[Part]],
    products: tuple[_Product | None, _Product | None],
) -> Finding | None:
    """One side is an activation of a factor times another, the other side something else of the same factors."""
    for known, odd in ((0, 1), (1, 0)):
        product = products[known]
        if product is None or _is_alike(product, products[odd]):
            continue
        form = _form_of(views[odd].target(), parts[odd], product, site)
        if form is None:
            continue
        value = "" if product.value is None else f", times {product.value.label}"
        usual = f"{product.best} of {product.gate.label}{value}"
        said = (usual, form.words) if known == 0 else (form.words, usual)
        return Finding(
            "activation-place" if form.has_activation else "activation-variant",
            f"the reference computes {said[0]}, the port {said[1]}{'' if form.has_activation else ' (no activation)'}",
            max(product.error[product.best], form.residual),
            f"Compute {said[0]} in {views[1].node.class_name}.",
            calls=(views[0].frame, _handed_on_by(views[1]) or views[1].frame),
        )
    return None


def _handed_on_by(view: View) -> int | None:
    """The outermost call that returned the tensor and did not make it, where an activation should have: not one of
    those around the frame."""
    flow = view.side.flow
    birth = flow.births[view.tensor.id]
    found = None
    for call in flow.ancestors(birth.call) if birth.side == "outputs" else ():
        returned = {slot.tensor.id for slot in flow.call(call).outputs if slot.tensor is not None}
        if call == view.frame or view.tensor.id not in returned:
            break
        found = call
    return found


def _of_an_unseen_product(site: Site, parts: list[Part]) -> Iterator[Finding]:
    """Both sides multiply by a factor that no call shows, one an activation of a tensor, the other another of it: the
    ratio of the two sides then is that of the two activations."""
    both = conformed(site.reference.target(), site.port.target())
    if both is None:
        return
    t, p = (sampled_to(values, SMALL_SAMPLE) for values in both)
    best = (math.inf, "", "", "")
    for part in [part for part in parts if part.few.size == p.size]:
        made = dict(zip(ACTIVATIONS, part.activated, strict=True))
        with np.errstate(all="ignore"):
            for first, second in permutations(made, 2):
                crossed = p * made[first], t * made[second]
                is_silenced = (crossed[0] == 0) & (crossed[1] == 0) & (p != t)
                if not is_silenced.any():
                    best = min(best, (residual(*crossed), first, second, part.label))
    if best[0] <= site.fit:
        yield Finding(
            "activation-variant",
            f"the reference multiplies by {best[1]} of {best[3]}, the port by {best[2]} of it"
            f"{' (no activation)' if best[2] == 'nothing' else ''}",
            best[0],
            f"Use {best[1]} in {site.port.node.class_name}.",
        )


def _is_alike(product: _Product, other: _Product | None) -> bool:
    """Whether both are made of the same factors."""
    return other is not None and _factors(product) == _factors(other)


def _factors(product: _Product) -> set[Identity]:
    return {part.identity for part in (product.gate, product.value) if part is not None}


def _form_of(target: Array, parts: list[Part], product: _Product, site: Site) -> Form | None:
    """How a side makes its tensor of the factors that the other side's product has."""
    by_identity = {part.identity: part for part in parts}
    gate = by_identity.get(product.gate.identity)
    value = by_identity.get(product.value.identity) if product.value is not None else None
    if gate is None or (product.value is not None and value is None):
        return None
    other = None if value is None else (value.label, value.few)
    return form_of(sampled_to(target, SMALL_SAMPLE), (gate.label, gate.few), other, site.fit)


def _told_apart(ours: _Product, theirs: _Product) -> tuple[str, str] | None:
    """The two sides' activations where the recorded values leave no doubt that they are two."""
    first, second = ours.best, theirs.best
    if (
        first != second
        and ours.error[second] > _TOLD_APART * ours.error[first]
        and theirs.error[first] > _TOLD_APART * theirs.error[second]
    ):
        return first, second
    shared = ours.differing.keys() & theirs.differing.keys()
    if not shared:
        return None
    first, second = (min(shared, key=lambda name: side.differing[name]) for side in (ours, theirs))
    if first == second or max(ours.differing[first], theirs.differing[second]) > _MOST_MISSES:
        return None
    is_clear = (
        ours.differing[second] > ours.differing[first] + _MOST_MISSES
        and theirs.differing[first] > theirs.differing[second] + _MOST_MISSES
    )
    return (first, second) if is_clear else None


def _best_product(view: View, parts: list[Part], site: Site) -> _Product | None:
    target = view.target()
    if not np.isfinite(target).any():
        return None
    y = sampled_to(target, SMALL_SAMPLE)
    best: tuple[float, Part, Part | None] | None = None
    for gate in parts:
        for value in (None, *(other for other in parts if other is not gate)):
            errors = _residuals(gate.activated if value is None else gate.activated * value.few, y)
            place = int(np.argmin(errors))
            is_good = errors[place] <= site.fit and place != _NOTHING
            if is_good and (best is None or errors[place] < best[0]):
                best = float(errors[place]), gate, value
    return None if best is None else _measured(view, target, best[1], best[2])


def _residuals(predictions: Array, target: Array) -> Array:
    """`residual` of each row of `predictions`."""
    size = float(np.linalg.norm(target))
    if size > 0 and math.isfinite(size) and np.isfinite(predictions).all():
        return np.linalg.norm(predictions - target, axis=1) / size
    return np.array([residual(row, target) for row in predictions])


def _measured(view: View, target: Array, gate: Part, value: Part | None) -> _Product:
    y, x = sampled_to(target, _LARGE_SAMPLE), sampled_to(gate.values, _LARGE_SAMPLE)
    times = sampled_to(value.values, _LARGE_SAMPLE) if value is not None else np.float64(1.0)
    dtype = view.tensor.dtype
    differing: dict[str, float] = {}
    with np.errstate(all="ignore"):
        error = {name: residual(function(x) * times, y) for name, function in ACTIVATIONS.items()}
        if dtype in _LOW_PRECISION:
            bound = max(3 * min(error.values()), 0.02)
            for name in [name for name, value_error in error.items() if value_error < bound]:
                low = rounded_to(ACTIVATIONS[name](x), dtype)
                differing[name] = float(np.mean(rounded_to(low * times, dtype) != y))
    return _Product(gate, value, error, differing)
