"""What counts as noise: the relative error up to which tensors agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from twinlens.diffing.nodes import Side
from twinlens.diffing.noise import PRINTED, Noise, noise_of, noise_of_two
from twinlens.diffing.points import Point


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as noise. `override` is a relative error that the user set; `measured` is by reference tensor id, the
    error between the reference and the same model in the port's dtype."""

    default: Noise
    override: float | None = None
    measured: Mapping[int, float] = field(default_factory=dict)

    def noise(self, point: Point) -> Noise:
        if point.difference.basis == "printed":
            return PRINTED
        own = noise_of_two(point.reference[0].dtype, point.port[0].dtype)
        return own if own.unit > self.default.unit else self.default

    def floor(self, point: Point) -> float:
        """The relative error up to which a tensor agrees that is made of equal ones."""
        if self.override is not None:
            return self.override
        floor = self.noise(point).floor
        return max(floor, 2 * self._measured(point)) if self.measured else floor

    def ceiling(self, point: Point) -> float:
        """The relative error that noise alone does not reach in a whole model."""
        if self.override is not None:
            return self.override
        return max(self.noise(point).ceiling, 3 * self._measured(point))

    def _measured(self, point: Point) -> float:
        return max((self.measured.get(t.id, 0.0) for t in point.reference), default=0.0)


def limits_of(reference: Side, port: Side, override: float | None, measured: Mapping[int, float]) -> Limits:
    """From the coarsest floating dtype of both models."""
    dtypes = [dtype for side in (reference, port) for dtype in _model_dtypes(side)]
    return Limits(noise_of(dtypes), override, measured)


def _model_dtypes(side: Side) -> Iterable[str]:
    if side.trace.info.dtype:
        return side.trace.info.dtype.split(", ")
    outputs = (slot.tensor for call in side.trace.calls for slot in call.outputs if slot.tensor is not None)
    return {tensor.dtype for tensor in outputs if "float" in tensor.dtype}
