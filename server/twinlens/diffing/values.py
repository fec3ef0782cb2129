"""The values of recorded tensors as numpy arrays, mapped from their files when they are asked for.

bfloat16, float8 and float16 come as float32, which holds every such value exactly.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinlens.tracing.record import Data, Tensor, TraceError

Array = npt.NDArray[Any]

RUN_AGAIN = "run the trace again"


class _Storage(NamedTuple):
    """How a dtype lies in the file, and how numpy values are made of it."""

    raw: np.dtype[Any]
    widen: Callable[[Array], Array] | None = None


def _from_bfloat16(raw: Array) -> Array:
    return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _from_float16(raw: Array) -> Array:
    return raw.astype(np.float32)  # numpy computes in float16 many times slower than in float32


def _float8_table(exponent_bits: int, mantissa_bits: int, bias: int, *, is_finite_only: bool) -> Array:
    """float32 of each of the 256 codes. With `is_finite_only` ("fn") the all-ones code alone is NaN."""
    table = np.empty(256, np.float32)
    top = (1 << exponent_bits) - 1
    for code in range(256):
        sign = -1.0 if code >> 7 else 1.0
        exponent = (code >> mantissa_bits) & top
        fraction = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
        if is_finite_only and code & 0x7F == 0x7F:
            table[code] = math.nan
        elif not is_finite_only and exponent == top:
            table[code] = math.nan if fraction else sign * math.inf
        elif exponent == 0:
            table[code] = sign * math.ldexp(fraction, 1 - bias)
        else:
            table[code] = sign * math.ldexp(1 + fraction, exponent - bias)
    return table


def _float8(exponent_bits: int, mantissa_bits: int, bias: int, *, is_finite_only: bool) -> _Storage:
    table = _float8_table(exponent_bits, mantissa_bits, bias, is_finite_only=is_finite_only)
    return _Storage(np.dtype("u1"), lambda raw: table[raw])


_STORAGES: Mapping[str, _Storage] = {
    **{
        name: _Storage(np.dtype(code))
        for name, code in {
            "float64": "<f8",
            "float32": "<f4",
            "int64": "<i8",
            "int32": "<i4",
            "int16": "<i2",
            "int8": "i1",
            "uint64": "<u8",
            "uint32": "<u4",
            "uint16": "<u2",
            "uint8": "u1",
            "bool": "?",
            "complex64": "<c8",
            "complex128": "<c16",
            "quint8": "u1",
            "qint8": "i1",
            "qint32": "<i4",
        }.items()
    },
    "float16": _Storage(np.dtype("<f2"), _from_float16),
    "bfloat16": _Storage(np.dtype("<u2"), _from_bfloat16),
    "float8_e4m3fn": _float8(4, 3, 7, is_finite_only=True),
    "float8_e5m2": _float8(5, 2, 15, is_finite_only=False),
}

_SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}


def item_size(dtype: str) -> int | None:
    """Bytes of one element in the file; None for a dtype whose values cannot be read here."""
    storage = _STORAGES.get(dtype)
    return storage.raw.itemsize if storage else None


@dataclass(frozen=True, slots=True)
class _Span:
    """Bytes `start` to `stop` of a file that is mapped."""

    memory: mmap.mmap | bytes
    start: int
    stop: int


class Values:
    """Reads one trace's tensors. Files are mapped on first use and stay mapped as long as this lives."""

    def __init__(self, folder: Path, printed: Mapping[int, Array] | None = None) -> None:
        self._folder = folder.resolve()
        self._printed = printed or {}
        self._packed: dict[str, mmap.mmap | bytes] = {}

    def has(self, tensor: Tensor) -> bool:
        """Whether every value can be read."""
        if tensor.data is None and not tensor.pieces and 0 not in tensor.shape:
            return False
        if item_size(tensor.dtype) is None:
            return False
        if math.prod(tensor.shape) == 0:
            return True
        if tensor.pieces:
            return "Partial" not in tensor.placement and all(piece.data is not None for piece in tensor.pieces)
        return tensor.data is not None

    def has_all(self, tensors: Iterable[Tensor]) -> bool:
        return all(map(self.has, tensors))

    def printed(self, tensor: Tensor) -> Array | None:
        """The numbers that a text of the tensor shows, in its order: a sample, to about five digits."""
        return self._printed.get(tensor.id)

    def raw(self, tensor: Tensor) -> Array:
        """Flat values as they lie in the file (bfloat16 as uint16, float8 as uint8), not copied.

        Raises:
            TraceError: the file is missing, cut short, or holds something else than the trace says.
            KeyError: the tensor's values were not kept.
        """
        storage = _STORAGES[tensor.dtype]
        if math.prod(tensor.shape) == 0:
            return np.empty(0, storage.raw)
        if tensor.data is None:
            raise KeyError(tensor.id)
        return self._flat(tensor.data, tensor.dtype, tensor.shape)

    def flat(self, tensor: Tensor, start: int = 0, stop: int | None = None) -> Array:
        """Values `start` to `stop` in row-major order, in numpy's terms. Raises as `raw` does."""
        if tensor.pieces:
            return self._assembled(tensor).reshape(-1)[start:stop]
        values = self.raw(tensor)[start:stop]
        widen = _STORAGES[tensor.dtype].widen
        return widen(values) if widen else values

    def array(self, tensor: Tensor) -> Array:
        """Values in the tensor's shape. Raises as `raw` does."""
        return self.flat(tensor).reshape(tensor.shape)

    def norms(self, data: Data | None, length: int) -> Array | None:
        """A norm profile: float32 of `length`; None where none was kept. Raises `TraceError` as `raw` does."""
        return None if data is None else self._flat(data, "float32", (length,))

    def check(self, tensor: Tensor) -> None:
        """Raise `TraceError` as reading the tensor would, without reading it."""
        if tensor.data is None and not tensor.pieces:
            return
        for data, shape in ((tensor.data, tensor.shape), *((piece.data, piece.shape) for piece in tensor.pieces)):
            if data is not None and item_size(tensor.dtype) is not None and math.prod(shape):
                self._span(data, tensor.dtype, shape)

    def _assembled(self, tensor: Tensor) -> Array:
        storage = _STORAGES[tensor.dtype]
        parts: list[tuple[tuple[slice, ...], Array]] = []
        for piece in tensor.pieces:
            if piece.data is None:
                raise KeyError(tensor.id)
            where = tuple(slice(start, start + size) for start, size in zip(piece.start, piece.shape, strict=True))
            values = self._flat(piece.data, tensor.dtype, piece.shape)
            widened = storage.widen(values) if storage.widen else values
            parts.append((where, widened.reshape(piece.shape)))
        whole = np.empty(tensor.shape, parts[0][1].dtype)
        for where, values in parts:
            whole[where] = values
        return whole

    def _flat(self, data: Data, dtype: str, shape: tuple[int, ...]) -> Array:
        span = self._span(data, dtype, shape)
        raw = _STORAGES[dtype].raw
        return np.frombuffer(span.memory, raw, count=(span.stop - span.start) // raw.itemsize, offset=span.start)

    def _span(self, data: Data, dtype: str, shape: tuple[int, ...]) -> _Span:
        path = self._folder / data.file
        if data.key:
            memory = self._map(data.file)
            start, stop = _entry(path, memory, data.key, dtype, shape)
        else:
            memory = self._packed.get(data.file) or self._packed.setdefault(data.file, self._map(data.file))
            start, stop = data.start, data.stop
        size = math.prod(shape) * (item_size(dtype) or 0)
        if stop - start != size:
            raise TraceError(
                f"{path} holds {stop - start:,} bytes where the trace says {dtype} {list(shape)}, which takes "
                f"{size:,}; {RUN_AGAIN}."
            )
        if start < 0 or stop > len(memory):
            raise TraceError(
                f"{path} is cut short: it has {len(memory):,} bytes, and the trace names bytes up to {stop:,}; "
                f"{RUN_AGAIN}."
            )
        return _Span(memory, start, stop)

    def _map(self, file: str) -> mmap.mmap | bytes:
        path = (self._folder / file).resolve()
        if not path.is_relative_to(self._folder):
            raise TraceError(
                f"{self._folder}: the trace names the file {file!r}, which lies outside of its folder; {RUN_AGAIN}."
            )
        try:
            with path.open("rb") as stream:
                if path.stat().st_size == 0:
                    return b""
                return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise TraceError(f"{path} cannot be read ({error.strerror or error}); {RUN_AGAIN}.") from error


def _entry(path: Path, memory: mmap.mmap | bytes, key: str, dtype: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Byte range of `key`, as the header of a safetensors file has it. Raises `TraceError`."""
    length = int.from_bytes(memory[:8], "little")
    if len(memory) < 8 or 8 + length > len(memory):
        raise TraceError(f"{path} is cut short: its header is not whole; {RUN_AGAIN}.")
    try:
        entry = json.loads(memory[8 : 8 + length])[key]
        found = (_SAFETENSORS_DTYPES.get(entry["dtype"], entry["dtype"]), tuple(entry["shape"]))
        start, stop = entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path} is no safetensors file with a tensor {key!r}; {RUN_AGAIN}.") from error
    if found != (dtype, shape):
        raise TraceError(
            f"{path} holds {found[0]} {list(found[1])} where the trace says {dtype} {list(shape)}; {RUN_AGAIN}."
        )
    return 8 + length + start, 8 + length + stop
