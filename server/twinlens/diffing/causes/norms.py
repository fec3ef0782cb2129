"""Norms: a weight that is `1 + w`, another eps, another formula, a weight that was not loaded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.batch_norms import batch_norm_eps
from twinlens.diffing.causes.elsewhere import held_elsewhere
from twinlens.diffing.causes.evidence import Finding, Site, View, nice, residual, short
from twinlens.diffing.causes.norm_casts import cast_order
from twinlens.diffing.causes.norm_fit import Norm, NormFit, eps_differs, fit_norm, named_eps, norm_of, own_eps
from twinlens.diffing.causes.norm_forms import compare_forms
from twinlens.diffing.values import Array
from twinlens.tracing.record import Parameter


def find(site: Site) -> Iterator[Finding]:
    if all("BatchNorm" in view.node.class_name for view in site.views):
        yield from batch_norm_eps(site)
        return
    norms = [norm_of(view) for view in site.views]
    if norms[0] is None or norms[1] is None:
        return
    reference, port = norms[0], norms[1]
    fits = fit_norm(reference, site.fit), fit_norm(port, site.fit)
    idle = [residual(norm.y, norm.x) <= site.fit for norm in (reference, port)]
    if idle[0] != idle[1] and fits[1 if idle[0] else 0] is not None:
        yield _idle(site, is_port=idle[1])
        return
    if fits[0] is None or fits[1] is None or fits[0].centred != fits[1].centred:
        yield from compare_forms(site, reference, port)
        return
    yield from _differences(site, (reference, port), (fits[0], fits[1]))


def _idle(site: Site, *, is_port: bool) -> Finding:
    """A norm that hands on what it is given."""
    who = "port" if is_port else "reference"
    words = {view.side.canonical[view.node.path].rpartition(".")[2] for view in site.views}
    return Finding(
        "qk-norm" if words & {"qnorm", "knorm"} else "norm-formula",
        f"the {who}'s {short(site.port.call.path)} returns what it is given, the other side's norms it",
        0.0,
        _change_of_idle(site, is_port=is_port),
    )


def _change_of_idle(site: Site, *, is_port: bool) -> str:
    ours, theirs = site.reference.node.class_name, site.port.node.class_name
    if ours != theirs:
        return f"Put the reference's {ours} in place of {theirs}."
    return f"{'Apply' if is_port else 'Leave out'} the norm in {short(site.port.call.path)}."


def _differences(site: Site, norms: tuple[Norm, Norm], fits: tuple[NormFit, NormFit]) -> Iterator[Finding]:
    (reference, port), (ours, theirs) = norms, fits
    left = max(ours.residual, theirs.residual)
    if None not in (ours.offset, theirs.offset) and ours.offset != theirs.offset:
        said = "1 + weight", "weight"
        first, second = said if ours.offset == 1 else said[::-1]
        yield Finding(
            "rmsnorm-offset",
            f"the reference multiplies by {first}, the port by {second}",
            left,
            f"Multiply by `{first}` in {site.port.node.class_name}, or {'add 1 to' if ours.offset else 'take 1 off'} "
            "the weight in the conversion.",
        )
        return
    shift = _constant_shift(reference.weight, port.weight)
    if shift:
        yield Finding(
            "rmsnorm-offset",
            f"the port's weight is the reference's {'+' if shift > 0 else '-'} {nice(abs(shift))}, and both multiply "
            "by it alike",
            left,
            "Convert the weight as it is.",
        )
        return
    yield from _not_loaded(site, reference, port, left)
    if eps_differs(fits):
        first, second = (named_eps(fit, view) for fit, view in zip(fits, site.views, strict=True))
        is_set_right = first != second and own_eps(site.port) == first
        elsewhere = list(compare_forms(site, reference, port)) if is_set_right else []
        yield from elsewhere
        if first != second and not elsewhere:
            yield Finding(
                "eps",
                f"{ours.name} eps: the port behaves as {nice(second)}, the reference as {nice(first)}",
                left,
                f"Give {site.port.node.class_name} eps={nice(first)}.",
            )
    yield from cast_order(site, norms, fits)


def _not_loaded(site: Site, ours: Norm, theirs: Norm, left: float) -> Iterator[Finding]:
    """A weight or bias that differs, with the same formula on both sides."""
    if not site.is_of_partners:
        return
    for name, own, other, initial in (
        ("weight", ours.weight, theirs.weight, 1.0),
        ("bias", ours.bias, theirs.bias, 0.0),
    ):
        if own is None or (other is not None and residual(other, own) <= 1e-2):
            continue
        owned = [_parameter(view, name) for view in site.views]
        full = f"{short(site.port.call.path)}.{name}"
        key = f"Look for the key of {full} among the missing keys of the load."
        if other is None:
            yield Finding("missing-bias", f"the port has no {full}, the reference has one", left, f"Give {full} to it.")
        elif (other == initial).all():
            yield Finding("missing-bias", f"{full} holds {nice(initial)} throughout: it was not loaded", left, key)
        elif owned[0] and owned[1] and (elsewhere := held_elsewhere(site, owned[0], owned[1])):
            yield elsewhere
            return
        else:
            is_permuted = residual(np.sort(other), np.sort(own)) <= 1e-2
            code = "unknown" if is_permuted else "wrong-weights"
            yield Finding(code, f"{full} is not the reference's", left, key)


def _parameter(view: View, name: str) -> Parameter | None:
    return next((item for item in view.node.parameters if item.name.rpartition(".")[2] == name), None)


def _constant_shift(reference: Array | None, port: Array | None) -> float:
    """`port - reference` where that is 1 or -1 throughout."""
    if reference is None or port is None or reference.shape != port.shape:
        return 0.0
    gap = port - reference
    for shift in (1.0, -1.0):
        if np.max(np.abs(gap - shift)) < 1e-2:
            return shift
    return 0.0
