"""Arguments and results in the JSON of transformers' debugger.

A tensor is `{"shape", "dtype", "value", "mean", "std", "min", "max"}`, each the `repr` that torch prints in scientific
notation. Beyond upstream: statistics of every dtype, not of float16, float32 and bfloat16 alone (in float64 for the
others), a count of NaN and Inf where there are any, no error for an empty, meta or sparse tensor, and the tensors of a
dataclass by field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import _tensor_str

from twinlens.tracing.identity import SeenTensors, local_part, why_without_values
from twinlens.tracing.leaves import holds_tensor, without_addresses
from twinlens.tracing.packed import write_safetensors
from twinlens.tracing.statistics import profile

_UPSTREAM_STATISTICS = (torch.float16, torch.float32, torch.bfloat16)
_LONGEST_NAME = 200
_NOT_IN_A_NAME = re.compile(r"[/\\\0]")


class DebugValues:
    """Serialises values; each tensor that is seen again unchanged costs nothing."""

    def __init__(self, folder: Path, *, use_repr: bool) -> None:
        self._folder = folder
        self._use_repr = use_repr
        self._seen: SeenTensors[dict[str, Any]] = SeenTensors()

    def serialise(self, value: Any, name: str) -> Any:
        """`value` as JSON. With `use_repr=False` each tensor goes to a file named `name` and its place in `value`."""
        if isinstance(value, (list, tuple)):
            return [self.serialise(item, f"{name}_{index}") for index, item in enumerate(value)]
        if isinstance(value, Mapping):
            return {str(key): self.serialise(item, f"{name}_{key}") for key, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type) and holds_tensor(value):
            items = ((field.name, getattr(value, field.name, None)) for field in fields(value))
            return {key: self.serialise(item, f"{name}_{key}") for key, item in items}
        if isinstance(value, torch.Tensor):
            return self._tensor(local_part(value), name)
        with _scientific():
            return without_addresses(repr(value))

    def _tensor(self, tensor: torch.Tensor, name: str) -> dict[str, Any]:
        described = self._seen.get(tensor)
        if described is None:
            with _scientific():
                described = self._describe(tensor)
            self._seen.put(tensor, described)
        if self._use_repr:
            return described
        return {**described, "value": self._write(tensor, name)}

    def _describe(self, tensor: torch.Tensor) -> dict[str, Any]:
        value = without_addresses(str(tensor)).splitlines() if self._use_repr else None
        return {"shape": repr(tensor.shape), "dtype": repr(tensor.dtype), "value": value, **_statistics(tensor)}

    def _write(self, tensor: torch.Tensor, name: str) -> str | None:
        if why_without_values(tensor):
            return None
        file = f"{_file_name(name)}.safetensors"
        write_safetensors(self._folder / file, tensor.int_repr() if tensor.is_quantized else tensor)
        return f"./{file}"


def _file_name(name: str) -> str:
    """`name` with nothing that leads out of a folder; one that no file system takes is cut and ends in its hash."""
    name = _NOT_IN_A_NAME.sub("_", name)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{blake2b(name.encode(), digest_size=8).hexdigest()}"


def _statistics(tensor: torch.Tensor) -> dict[str, Any]:
    tensor = tensor.detach()
    if tensor.dtype in _UPSTREAM_STATISTICS and tensor.numel() > 0 and tensor.layout is torch.strided:
        return _own_dtype_statistics(tensor)
    if tensor.numel() == 0 or why_without_values(tensor):
        return {}
    statistics = profile(tensor).statistics
    if statistics is None:
        return {}
    fields = {name: repr(torch.tensor(getattr(statistics, name), dtype=torch.float64)) for name in ("mean", "std")}
    ends = {name: getattr(statistics, name) for name in ("min", "max")}
    exact = not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized)
    dtype = tensor.dtype if exact else torch.float64
    fields |= {name: repr(torch.tensor(end, dtype=torch.float64).to(dtype)) for name, end in ends.items()}
    return {**fields, **_counts(tensor)}


def _own_dtype_statistics(tensor: torch.Tensor) -> dict[str, Any]:
    mean = tensor.mean()
    fields = {
        "mean": mean,
        "std": tensor.std() if tensor.numel() > 1 else torch.full_like(mean, math.nan),
        "min": tensor.min(),
        "max": tensor.max(),
    }
    described: dict[str, Any] = {name: repr(value) for name, value in fields.items()}
    if not why_without_values(tensor) and not math.isfinite(mean):
        described |= _counts(tensor)
    return described


def _counts(tensor: torch.Tensor) -> dict[str, int]:
    """`nan` and `inf`, each only where there are any."""
    statistics = profile(tensor).statistics
    if statistics is None:
        return {}
    counts = {"nan": statistics.nans, "inf": statistics.positive_infinities + statistics.negative_infinities}
    return {name: count for name, count in counts.items() if count}


@contextmanager
def _scientific() -> Generator[None]:
    """torch prints in scientific notation, 120 columns wide; afterwards as before."""
    before = {name: getattr(_tensor_str.PRINT_OPTS, name) for name in _PRINT_OPTIONS}
    torch.set_printoptions(sci_mode=True, linewidth=120)
    try:
        yield
    finally:
        torch.set_printoptions(**before)


_PRINT_OPTIONS = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
