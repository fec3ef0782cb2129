"""A prepared model in another dtype or on another device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from twinlens.tracing.errors import UsageError
from twinlens.tracing.recipes import Prepared


@dataclass(frozen=True, slots=True)
class Destination:
    """None leaves things as they are."""

    dtype: torch.dtype | None
    device: torch.device | None


def destination(dtype: str, device: str) -> Destination:
    """The dtype and device of these names; None for an empty one.

    Raises:
        UsageError: torch has no such dtype or device.
    """
    return Destination(_dtype(dtype) if dtype else None, _device(device) if device else None)


def moved(prepared: Prepared, to: Destination) -> Prepared:
    """With floating parameters and inputs in the destination's dtype, everything on its device."""
    if to == Destination(None, None):
        return prepared

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(device=to.device, dtype=to.dtype if value.is_floating_point() else None)
        if isinstance(value, Mapping):
            return {key: move(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(move(item) for item in value)
        return value

    model = prepared.model.to(device=to.device, dtype=to.dtype)
    return replace(prepared, model=model, args=move(prepared.args), kwargs=move(dict(prepared.kwargs)))


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise UsageError(f"{name} is no floating dtype of torch; use float32, bfloat16, float16 or float64.")
    return dtype


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        is_known = not str(error).startswith("Expected one of")  # and a list of forty words
        reason = str(error).splitlines()[0] if is_known else "torch knows none of this name"
        raise UsageError(
            f"The device {name} cannot be used here ({reason}); use cpu, or one that torch lists."
        ) from error
    return device
