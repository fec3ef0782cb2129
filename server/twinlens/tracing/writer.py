"""Write the record of a trace while the forward runs: lines first seen, first written, so that a killed run can be
read."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from twinlens.tracing import lines
from twinlens.tracing.fingerprint import combined_hash, fingerprint
from twinlens.tracing.identity import local_part, why_without_values
from twinlens.tracing.leaves import argument_leaves, leaves, positional_names
from twinlens.tracing.metadata import describe_module
from twinlens.tracing.parameters import ParameterLog
from twinlens.tracing.patterns import is_named
from twinlens.tracing.record import (
    RECORD_FILE,
    Call,
    Error,
    Forward,
    Info,
    Slot,
    TraceError,
)
from twinlens.tracing.tensors import TensorLog
from twinlens.tracing.tracebacks import user_frames
from twinlens.tracing.watch import module_paths

Progress = Callable[[str, int], None]
"""Called with the module path that is entered and how many calls there were before it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What to keep. Statistics are kept of every tensor, values as these say."""

    stats_only: bool = False
    only: tuple[str, ...] = ()
    """Keep values in modules whose class or path matches one of these shell patterns, and in what they call."""
    max_bytes: int | None = None
    """Keep no more bytes of values than this; a quarter of it is for parameters."""
    part: str = ""
    """Record only the calls of modules of this class, and what they call."""


@dataclass(slots=True)
class _Open:
    """A call that has been entered and not left."""

    path: str
    is_kept: bool
    keeps_values: bool
    parent: int | None
    call: int | None = None
    """Its index, once its line is written."""
    began: float = 0.0


class TraceWriter:
    """Observes one model's calls (`watch`, `Taps`) and appends them to the record in `folder`."""

    def __init__(self, folder: Path, info: Info, recording: Recording, on_progress: Progress | None = None) -> None:
        try:
            self._stream = (folder / RECORD_FILE).open("wb", buffering=0)
        except OSError as error:
            raise TraceError(
                f"{folder} cannot be written ({error.strerror}); choose another folder for the trace."
            ) from error
        self._recording = recording
        self._root_class = info.class_name
        self._on_progress = on_progress
        self._tensors = TensorLog(folder, metadata={"class": info.class_name, "created": info.created})
        self._parameters = ParameterLog(
            self._tensors,
            lambda parameter: self._line(lines.parameter_line(parameter)),
            stats_only=recording.stats_only,
        )
        self._stack: list[_Open] = []
        self._numbers: dict[str, int] = {}
        self._calls = 0
        self._entered = 0
        self._forwards = 0
        self._forward_began: float | None = None
        self._inputs_hash = ""
        self._began = time.perf_counter()
        self._line(lines.trace_line(info))

    def describe(self, model: nn.Module) -> None:
        """Write the lines of the modules, parameters and buffers."""
        for module, paths in module_paths(model).items():
            self._line(lines.module_line(describe_module(module, paths)))
        budget = self._recording.max_bytes
        self._tensors.limit = None if budget is None else budget // 4
        with torch.no_grad(), _plain_torch():
            self._parameters.begin(model, self._root_class)
        self._tensors.limit = budget

    def interrupt(self) -> None:
        """Read no more parameters: whoever interrupts does not want to wait."""
        self._parameters.cancel()

    def close(self) -> None:
        """Write the last line. A record that was not closed is one of a killed run."""
        self._parameters.close()
        self._tensors.close()
        self._line(lines.end_line(time.perf_counter() - self._began))
        self._stream.close()

    def enter(self, module: nn.Module, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        cls = type(module)
        entered = self._push(path, cls.__name__)
        if self._on_progress is not None:
            self._on_progress(path, self._entered)
        self._entered += 1
        with _plain_torch():
            self._enter(entered, cls.__name__, argument_leaves(_forward_names(cls), args, kwargs), is_function=False)

    def enter_function(
        self, name: str, parameters: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        entered = self._push(f"{self._stack[-1].path if self._stack else self._root_class}.{name}()", name)
        with _plain_torch():
            self._enter(entered, name, argument_leaves(parameters, args, kwargs), is_function=True)

    def leave(self, result: Any) -> None:
        with _plain_torch():
            entered = self._stack.pop()
            seconds = time.perf_counter() - entered.began
            if entered.call is not None:
                slots = self._slots(leaves(result), entered, f"{entered.path}#{entered.call}.outputs")
                self._line(lines.leave_line(entered.call, seconds, slots, self._tensors.take_new()))
        self._end_forward("complete")

    def fail(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            self.interrupt()
        entered = self._stack.pop()
        if entered.call is not None:
            seconds = time.perf_counter() - entered.began
            self._line(
                lines.raise_line(entered.call, seconds, Error(type(error).__name__, str(error), user_frames(error)))
            )
        self._end_forward("raised")

    def _push(self, path: str, class_name: str) -> _Open:
        outer = self._stack[-1] if self._stack else None
        is_kept = (outer is not None and outer.is_kept) or self._recording.part in ("", class_name)
        keeps_values = (outer is not None and outer.keeps_values) or self._is_wanted(path, class_name)
        entered = _Open(path, is_kept, keeps_values, outer.call if outer else None)
        self._stack.append(entered)
        return entered

    def _enter(
        self, entered: _Open, class_name: str, found: Iterable[tuple[str, torch.Tensor | str]], *, is_function: bool
    ) -> None:
        if len(self._stack) == 1:
            found = list(found)
            self._begin_forward(found)
        if entered.is_kept:
            path = entered.path
            number = self._numbers.get(path, 0)
            self._numbers[path] = number + 1
            slots = self._slots(found, entered, f"{path}#{self._calls}.inputs")
            call = Call(
                self._calls, entered.parent, self._forwards, path, class_name, number, slots, is_function=is_function
            )
            entered.call = self._calls
            self._calls += 1
            self._line(lines.enter_line(call, self._tensors.take_new()))
        entered.began = time.perf_counter()

    def _begin_forward(self, found: list[tuple[str, torch.Tensor | str]]) -> None:
        self._numbers = {}
        self._inputs_hash = combined_hash(
            f"{place}={value if isinstance(value, str) else _hash_of(value)}" for place, value in found
        )
        self._line(lines.forward_line(self._forwards, self._inputs_hash))
        self._forward_began = time.perf_counter()

    def _end_forward(self, status: str) -> None:
        if self._stack or self._forward_began is None:
            return
        seconds = time.perf_counter() - self._forward_began
        self._forward_began = None
        self._parameters.finish()
        self._line(lines.forward_end_line(Forward(self._forwards, self._inputs_hash, status, seconds)))
        self._forwards += 1

    def _is_wanted(self, path: str, class_name: str) -> bool:
        only = self._recording.only
        return not only or is_named(only, self._root_class, path, class_name)

    def _slots(self, found: Iterable[tuple[str, torch.Tensor | str]], entered: _Open, name: str) -> tuple[Slot, ...]:
        omitted = "stats only" if self._recording.stats_only else "" if entered.keeps_values else "filtered"
        slots: list[Slot] = []
        for place, value in found:
            if isinstance(value, str):
                slots.append(Slot(place, None, value))
                continue
            if self._parameters.is_open(value):
                self._parameters.finish()
            slots.append(Slot(place, self._tensors.log(value, f"{name}.{place}" if place else name, omitted)))
        return tuple(slots)

    def _line(self, line: str) -> None:
        self._stream.write(f"{line}\n".encode())


@lru_cache(maxsize=4096)
def _forward_names(cls: type[nn.Module]) -> tuple[str, ...]:
    """Of the positional parameters of the class's forward, `self` left out."""
    return positional_names(cls.forward)[1:]


def _hash_of(tensor: torch.Tensor) -> str:
    head = f"{tensor.dtype}{tuple(tensor.shape)}"
    local = local_part(tensor)
    return head if why_without_values(local) else head + fingerprint(local).ordered


@contextmanager
def _plain_torch() -> Generator[None]:
    """Our own torch calls are none of the model's: no function mode, ours or another's, sees them."""
    with torch._C.DisableTorchFunction():
        yield
