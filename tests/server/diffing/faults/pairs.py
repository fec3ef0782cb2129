"""What a fault is, and how a pair of models with one is made and traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from twinlens.tracing.context import model_addition_debugger_context

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Built:
    original: nn.Module
    port: nn.Module
    original_inputs: Inputs
    port_inputs: Inputs


@dataclass(frozen=True)
class Case:
    """One pair. `causes` maps each fault's code to the port's module paths (root class left out) that may be named for
    it; empty for a control."""

    name: str
    family: str
    build: Callable[[], Built]
    causes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32",)
    """In which the fault is visible."""
    port_dtype: str | None = None
    """Where it is another one than the original's."""


def zero(part: str, weights: dict[str, torch.Tensor], _config: object) -> None:
    """Fills every tensor that has `part` in its name with zeros."""
    for name in [name for name in weights if part in name]:
        weights[name] = torch.zeros_like(weights[name])


def write_traces(case: Case, dtype: str, folder: Path) -> tuple[Path, Path]:
    """The folders of the original's and the port's trace."""
    built = case.build()
    for name, model, inputs, kind in (
        ("original", built.original, built.original_inputs, dtype),
        ("port", built.port, built.port_inputs, case.port_dtype or dtype),
    ):
        wanted = getattr(torch, kind)
        model.to(wanted)
        torch.manual_seed(5)
        with model_addition_debugger_context(model, str(folder / name), packed=True), torch.no_grad():
            model(**{key: _cast(value, wanted) for key, value in inputs.items()})
    return folder / "original", folder / "port"


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
