"""Read a trace folder back, whole or cut short. Standard library only; no tensor's values are touched."""

from __future__ import annotations

import gc
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from twinlens.tracing.lines import (
    read_call,
    read_info,
    read_module,
    read_parameter,
    read_slots,
    read_tensor,
)
from twinlens.tracing.record import (
    FORMAT_VERSION,
    RECORD_FILE,
    Call,
    Error,
    Forward,
    Info,
    Module,
    Parameter,
    Slot,
    Tensor,
    Trace,
    TraceError,
)


def read_trace(folder: Path) -> Trace:
    """The trace in `folder`; under `torchrun`, all ranks merged (see `twinlens.tracing.ranks`).

    Raises:
        TraceError: there is no record, its first line is not one of this version's, or a whole line in it is damaged.
            A last line that was cut short is what a killed run leaves, and no error.
    """
    from twinlens.tracing.ranks import merge, rank_folders

    own = read_rank(folder)
    others = [read_rank(other) for other in rank_folders(folder)]
    return merge([own, *others]) if others else own


def read_rank(folder: Path) -> Trace:
    """The trace that one process wrote to `folder`. Raises `TraceError` as `read_trace` does."""
    reader = _Reader(folder)
    with _without_garbage_collection():
        for number, fields in _lines(folder / RECORD_FILE):
            try:
                reader.take(fields)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise TraceError(
                    f"{folder / RECORD_FILE}, line {number}: not a line of a trace ({error!r}); run the trace again."
                ) from error
    return reader.trace()


def read_header(folder: Path) -> Info:
    """What the first line says, without reading the rest. Raises `TraceError` as `read_trace` does."""
    for _number, fields in _lines(folder / RECORD_FILE):
        return read_info(fields)
    raise TraceError(f"{folder / RECORD_FILE} is empty: the run ended before it began; run the trace again.")


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each whole line's number and fields."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise TraceError(f"{path.parent} holds no trace: {RECORD_FILE} cannot be read ({error.strerror}).") from error
    first = 1
    with stream:
        while lines := stream.readlines(_BYTES_AT_ONCE if first > 1 else 1):
            if not lines[-1].endswith(b"\n"):
                lines.pop()
            for number, fields in enumerate(_decoded(path, lines, first), start=first):
                if number == 1:
                    _check_version(path, fields)
                yield number, fields
            first += len(lines)


def _decoded(path: Path, lines: list[bytes], first: int) -> Iterator[dict[str, Any]]:
    """What the lines say, decoded as one array, which is faster; one by one where that fails, to name the line."""
    try:
        found = _DECODER.decode(f"[{b','.join(lines).decode()}]")
        is_sound = len(found) == len(lines) and all(type(fields) is dict for fields in found)
    except ValueError:
        is_sound = False
    yield from found if is_sound else _decoded_singly(path, lines, first)


def _decoded_singly(path: Path, lines: list[bytes], first: int) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=first):
        try:
            fields = _DECODER.decode(line.decode())
        except ValueError as error:
            raise TraceError(f"{path}, line {number}: not JSON ({error}); run the trace again.") from error
        if not isinstance(fields, dict):
            raise TraceError(f"{path}, line {number}: not a line of a trace; run the trace again.")
        yield fields


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_BYTES_AT_ONCE = 1 << 18
# One for all lines: `json.loads` makes a decoder at each call that has an option.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _check_version(path: Path, fields: dict[str, Any]) -> None:
    if fields.get("kind") != "trace":
        raise TraceError(f"{path}: the first line is not that of a trace; choose a folder that `twinlens trace` wrote.")
    if fields.get("format") != FORMAT_VERSION:
        raise TraceError(
            f"{path}: format {fields.get('format')!r}, this Twinlens reads {FORMAT_VERSION}; run the trace again."
        )


@contextmanager
def _without_garbage_collection() -> Generator[None]:
    """Records hold no cycles, and the collector's scans of a growing heap double the time to read a large trace."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Reader:
    """Takes the lines one by one and holds what they have said so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._info: Info | None = None
        self._modules: list[Module] = []
        self._parameters: dict[str, Parameter] = {}
        """By name: what the last line of it said."""
        self._forwards: list[Forward] = []
        self._calls: list[Call | None] = []
        """None for one that has not been left."""
        self._entered: dict[int, tuple[dict[str, Any], tuple[Slot, ...]]] = {}
        """Of those: the fields of their lines, and their inputs."""
        self._tensors: dict[int, Tensor] = {}
        self._is_complete = False
        self._take_kind = {
            "trace": self._take_trace,
            "module": lambda fields: self._modules.append(read_module(fields)),
            "parameter": self._take_parameter,
            "forward": self._take_forward,
            "enter": self._take_enter,
            "leave": self._take_leave,
            "forward_end": self._take_forward_end,
            "end": self._take_end,
        }

    def take(self, fields: dict[str, Any]) -> None:
        self._take_kind[fields["kind"]](fields)

    def trace(self) -> Trace:
        if self._info is None:
            raise TraceError(
                f"{self._folder / RECORD_FILE} is empty: the run ended before it began; run the trace again."
            )
        return Trace(
            folder=self._folder,
            info=self._info,
            modules=tuple(self._modules),
            parameters=tuple(self._parameters.values()),
            forwards=tuple(self._forwards),
            calls=tuple(call or read_call(*self._entered[index]) for index, call in enumerate(self._calls)),
            is_complete=self._is_complete,
        )

    def _take_trace(self, fields: dict[str, Any]) -> None:
        self._info = read_info(fields)

    def _take_parameter(self, fields: dict[str, Any]) -> None:
        parameter = read_parameter(fields, self._rank())
        self._tensors[parameter.tensor.id] = parameter.tensor
        self._parameters[parameter.name] = parameter

    def _take_forward(self, fields: dict[str, Any]) -> None:
        self._forwards.append(Forward(fields["index"], fields["inputs_hash"], "unfinished"))

    def _take_enter(self, fields: dict[str, Any]) -> None:
        self._take_tensors(fields)
        if fields["call"] != len(self._calls):
            raise ValueError(f"call {fields['call']} where {len(self._calls)} was due")
        self._entered[fields["call"]] = fields, read_slots(fields["inputs"], self._tensors)
        self._calls.append(None)

    def _take_leave(self, fields: dict[str, Any]) -> None:
        index = fields["call"]
        entered, inputs = self._entered.pop(index)
        error = fields.get("error")
        if error is None:
            self._take_tensors(fields)
            outputs = read_slots(fields["outputs"], self._tensors)
            self._calls[index] = read_call(entered, inputs, outputs, fields["seconds"])
        else:
            self._calls[index] = read_call(entered, inputs, (), fields["seconds"], Error(*error))

    def _take_forward_end(self, fields: dict[str, Any]) -> None:
        begun = self._forwards[fields["index"]]
        self._forwards[fields["index"]] = replace(begun, status=fields["status"], seconds=fields["seconds"])

    def _take_end(self, fields: dict[str, Any]) -> None:
        self._is_complete = bool(fields["kind"])

    def _take_tensors(self, fields: dict[str, Any]) -> None:
        for tensor_fields in fields["tensors"]:
            self._tensors[tensor_fields["id"]] = read_tensor(tensor_fields, self._rank())

    def _rank(self) -> int:
        return self._info.rank if self._info else 0
