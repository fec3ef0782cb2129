"""Gated products with limits, where the two sides have others: of the factors, of the whole, or none on one side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from twinlens.diffing.causes.activation_parts import Part, sampled_to
from twinlens.diffing.causes.clamped_fit import ClampedProduct, clamped_product
from twinlens.diffing.causes.evidence import Finding, Site, View, residual
from twinlens.diffing.causes.gate_roles import other_roles
from twinlens.diffing.values import Array

_SAMPLE = 20_000


@dataclass(frozen=True, slots=True)
class _Made:
    """How a side makes its tensor, (n,), of two of the tensors that its code saw."""

    gate: Part
    value: Part
    form: ClampedProduct
    target: Array

    def fits(self, other: _Made, fit: float) -> bool:
        """Whether this side's formula describes the other side as well."""
        made = self.form.of(_few(other.gate.values), _few(other.value.values))
        return residual(made, other.target) <= fit

    def told_as(self, activation: str, fit: float) -> _Made:
        """With the other side's activation where it cannot be told from this side's."""
        other = replace(self.form, activation=activation)
        other = other.measured(self.target, _few(self.gate.values), _few(self.value.values))
        return replace(self, form=other) if other.residual <= fit else self

    @property
    def said(self) -> str:
        return self.form.said(self.gate.label, self.value.label)


def find(site: Site, views: tuple[View, View], parts: Sequence[list[Part]]) -> Iterator[Finding]:
    ours, theirs = (_made(view, own, site.fit) for view, own in zip(views, parts, strict=True))
    if ours is None or theirs is None:
        return
    theirs = theirs.told_as(ours.form.activation, site.fit)
    left = max(ours.form.residual, theirs.form.residual)
    activations = ours.form.activation, theirs.form.activation
    roles = other_roles(site, (ours.gate, ours.value), (theirs.gate, theirs.value), activations, left)
    if roles is not None:
        yield roles
    elif not ours.fits(theirs, site.fit) and not theirs.fits(ours, site.fit):
        yield Finding(
            "activation-variant",
            f"the reference computes {ours.said}; the port {theirs.said}",
            left,
            f"Compute it as the reference does in {views[1].node.class_name}.",
        )


def _made(view: View, parts: list[Part], fit: float) -> _Made | None:
    target = _few(view.target())
    best: _Made | None = None
    for gate in parts:
        for value in [part for part in parts if part is not gate]:
            form = clamped_product(target, _few(gate.values), _few(value.values), fit)
            if form is not None and (best is None or form.residual < best.form.residual):
                best = _Made(gate, value, form, target)
    return best


def _few(values: Array) -> Array:
    return sampled_to(values, _SAMPLE)
