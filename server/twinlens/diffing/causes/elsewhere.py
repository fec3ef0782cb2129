"""Parameters of the port that hold the values of another one of the reference's, such as the same of another layer."""

from __future__ import annotations

from twinlens.diffing.causes.evidence import Finding, Site
from twinlens.tracing.record import Parameter


def held_elsewhere(site: Site, reference: Parameter, port: Parameter) -> Finding | None:
    """Names the reference's parameter whose values `port` holds instead of those of `reference`."""
    if port.fingerprint is None:
        return None
    for other in site.reference.side.trace.parameters:
        if other.fingerprint is not None and other.fingerprint.ordered == port.fingerprint.ordered:
            return Finding(
                "wrong-weights",
                f"{port.name} holds the values of the reference's {other.name}",
                0.0,
                f"Give {port.name} the values of the reference's {reference.name} in the conversion.",
            )
    return None
