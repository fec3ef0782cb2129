"""Read what transformers' own debugger writes (`_SUMMARY.json`, `_FULL_TENSORS.json`) into the record of a trace.

What such a file lacks stays empty: modules, parameters, sources, versions. A tensor that is seen again has no mark of
it there; equal shape, dtype and printed statistics count as one tensor.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twinlens.diffing.values import RUN_AGAIN, Array
from twinlens.tracing.record import (
    FULL_SUFFIX,
    SUMMARY_SUFFIX,
    Call,
    Data,
    Error,
    Forward,
    Info,
    Slot,
    Statistics,
    Tensor,
    Trace,
    TraceError,
)

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)|\b(?:True|False)\b")
_RANGE = re.compile(r"^(.*)\[(\d+):(\d+)\]$")
_SCALAR_STATISTICS = ("mean", "std", "min", "max")


@dataclass(frozen=True, slots=True)
class DebuggerTrace:
    """`printed` holds, by tensor id, the numbers that a text of the tensor shows."""

    trace: Trace
    printed: Mapping[int, Array]


def summary_files(folder: Path) -> list[Path]:
    """The debugger's files in `folder`, one a forward: those with values where they are there."""
    full = sorted(folder.glob(f"*{FULL_SUFFIX}"))
    return full or sorted(folder.glob(f"*{SUMMARY_SUFFIX}"))


def read_debugger_trace(path: Path) -> DebuggerTrace:
    """Raises `TraceError` where `path` is not such a file."""
    try:
        root = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); choose a trace's folder or summary.") from error
    except ValueError as error:
        raise TraceError(f"{path} is not JSON ({error}); {RUN_AGAIN}.") from error
    if not isinstance(root, dict) or not isinstance(root.get("module_path"), str):
        raise TraceError(f"{path} is no trace: it has no module_path; choose a file that a debugger context wrote.")
    reader = _Reader(path)
    try:
        reader.take(root, None)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise TraceError(f"{path}: not a trace that can be read ({error!r}); {RUN_AGAIN}.") from error
    raised = any(call.error for call in reader.calls)
    trace = Trace(
        folder=path.parent,
        info=Info(class_name=root["module_path"], created=""),
        forwards=(Forward(0, "", "raised" if raised else "complete"),),
        calls=tuple(reader.calls),
        is_complete=True,
    )
    return DebuggerTrace(trace, reader.printed)


@dataclass(slots=True)
class _Reader:
    path: Path
    calls: list[Call] = field(default_factory=list)
    printed: dict[int, Array] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _tensors: dict[tuple[object, ...], Tensor] = field(default_factory=dict)

    def take(self, node: dict[str, Any], parent: int | None) -> None:
        path = node["module_path"].removesuffix(" (top-level)")
        index = len(self.calls)
        number = self._numbers.get(path, 0)
        self._numbers[path] = number + 1
        error = node.get("error")
        kind, _, message = str(error or "").partition(": ")
        self.calls.append(
            Call(
                index=index,
                parent=parent,
                forward=0,
                path=path,
                class_name=path.rpartition(".")[2],
                number=number,
                inputs=tuple(self._arguments(node.get("inputs"))),
                outputs=tuple(self._slots(node.get("outputs"), "")) if node.get("outputs") is not None else (),
                error=Error(kind, message) if error else None,
            )
        )
        for child in node.get("children") or ():
            self.take(child, index)

    def _arguments(self, inputs: Any) -> Iterator[Slot]:
        for index, value in enumerate((inputs or {}).get("args") or ()):
            yield from self._slots(value, f"*args[{index}]")
        for name, value in ((inputs or {}).get("kwargs") or {}).items():
            yield from self._slots(value, name)

    def _slots(self, value: Any, place: str) -> Iterator[Slot]:
        if isinstance(value, dict) and isinstance(value.get("shape"), str) and isinstance(value.get("dtype"), str):
            yield Slot(place, self._tensor(value))
        elif isinstance(value, dict):
            for key, part in value.items():
                yield from self._slots(part, f"{place}.{key}" if place else str(key))
        elif isinstance(value, list):
            for index, part in enumerate(value):
                yield from self._slots(part, f"{place}[{index}]")
        else:
            yield Slot(place, None, str(value))

    def _tensor(self, fields: dict[str, Any]) -> Tensor:
        shape = tuple(int(size) for size in re.findall(r"\d+", fields["shape"]))
        dtype = fields["dtype"].removeprefix("torch.")
        value = fields.get("value")
        text = "\n".join(value) if isinstance(value, list) else ""
        known = tuple(fields.get(name) for name in _SCALAR_STATISTICS)
        key = (shape, dtype, known, text) if any(known) or text else (len(self._tensors),)
        if key not in self._tensors:
            identity = len(self._tensors)
            self._tensors[key] = Tensor(
                id=identity,
                shape=shape,
                dtype=dtype,
                stride=(),
                device="",
                storage=identity,
                statistics=_statistics(fields, math.prod(shape)),
                data=_data(value) if isinstance(value, str) else None,
                omitted="" if isinstance(value, str) else "values not written",
            )
            if text:
                self.printed[identity] = _printed_numbers(text)
        return self._tensors[key]


def _data(value: str) -> Data:
    packed = _RANGE.match(value)
    if packed:
        return Data(packed[1].removeprefix("./"), int(packed[2]), int(packed[3]))
    return Data(value.removeprefix("./"), -1, -1, "data")


def _printed_numbers(text: str) -> Array:
    body = text.split("dtype=")[0]
    return np.array([_as_number(word) for word in _NUMBER.findall(body.removeprefix("tensor"))], np.float64)


def _as_number(word: str) -> float:
    return {"True": 1.0, "False": 0.0}[word] if word in ("True", "False") else float(word)


def _statistics(fields: Mapping[str, Any], count: int) -> Statistics | None:
    """From four printed numbers; `l2` follows from mean and std. Zeros are not counted there."""
    if not all(isinstance(fields.get(name), str) for name in _SCALAR_STATISTICS):
        return None
    mean, std, low, high = (_first_number(fields[name]) for name in _SCALAR_STATISTICS)
    squares = count * mean * mean + (0.0 if math.isnan(std) else std * std * (count - 1))
    return Statistics(
        mean=mean,
        std=std,
        min=low,
        max=high,
        absmax=max(abs(low), abs(high)),
        l2=math.sqrt(squares) if squares >= 0 else math.nan,
        zeros=0,
        nans=int(fields.get("nan", 0)) or (1 if math.isnan(mean) else 0),
        positive_infinities=int(fields.get("inf", 0)) or (1 if math.isinf(high) else 0),
        negative_infinities=1 if math.isinf(low) else 0,
    )


def _first_number(text: str) -> float:
    found = _NUMBER.search(text.removeprefix("tensor"))
    if found is None:
        raise ValueError(f"no number in {text!r}")
    return _as_number(found[0])
