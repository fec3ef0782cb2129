"""Which of two factors is the gate: the two exchanged, or a fused projection taken apart in another way."""

from __future__ import annotations

from twinlens.diffing.causes.activation_parts import Part
from twinlens.diffing.causes.evidence import Finding, Identity, Site

Factors = tuple[Part, Part]
"""The gate and the value."""
_WORDS = {"first": "the first half", "second": "the second half", "even": "the even columns", "odd": "the odd columns"}


def other_roles(
    site: Site, ours: Factors, theirs: Factors, activations: tuple[str, str], left: float
) -> Finding | None:
    """A finding where the port's gate is not the reference's; None where it is, or where that cannot be said."""
    (gate, value), (their_gate, their_value) = ours, theirs
    is_exchanged = gate.identity == their_value.identity or value.identity == their_gate.identity
    if not is_exchanged and not _is_taken_apart_otherwise(site, gate, their_gate):
        return None
    change = "Exchange the two" if is_exchanged else "Take the projection apart as the reference does"
    return Finding(
        "gate-up-swapped",
        f"the reference applies {activations[0]} to {gate.label} and multiplies by {value.label}; the port "
        f"applies {activations[1]} to {their_gate.label} and multiplies by {their_value.label}"
        f"{_stands_for(site, gate, their_gate)}",
        left,
        f"{change} in {site.port.node.class_name}, or their weights in the conversion.",
    )


def _is_taken_apart_otherwise(site: Site, gate: Part, their_gate: Part) -> bool:
    if _part_that_stands_for(site, gate, their_gate) not in ("", their_gate.identity.part):
        return True
    return gate.identity.tensor == their_gate.identity.tensor and gate.identity != their_gate.identity


def _stands_for(site: Site, gate: Part, their_gate: Part) -> str:
    """What the port's gate is of the reference's tensor, or what should be the gate, where no label says so."""
    own = _part_that_stands_for(site, gate, their_gate)
    if own:
        return f" (the reference has {_WORDS[own]} of it in {gate.label})"
    part = their_gate.identity.part
    if not part or gate.identity.tensor != their_gate.identity.tensor or their_gate.label.startswith(_WORDS[part]):
        return ""
    return f" ({their_gate.label} holds {_WORDS[part]} of the reference's)"


def _part_that_stands_for(site: Site, gate: Part, their_gate: Part) -> str:
    """Of a port's tensor that has no partner as a whole: which part of it is the reference's gate."""
    whole = -1 - their_gate.identity.tensor
    return next((part for part in _WORDS if site.partners.get(Identity(whole, part)) == gate.identity), "")
