"""Safetensors files that grow while the forward runs, and that are read even if it is killed.

A safetensors file begins with the length of its header and the header, which lists every tensor and so is known last.
Room is left for it in front; values go behind as they come; closing the file writes the header into the room, filled
up with spaces, as the format allows. When the room would not do, the next file begins.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import torch

from twinlens.tracing.record import TENSOR_FILE, Data

_ALIGNMENT = 64
_DTYPE_NAMES: Mapping[torch.dtype, str] = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """The memory of a contiguous CPU tensor, not copied: it must outlive the view."""
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return memoryview(b"")
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")


def header_entry(tensor: torch.Tensor, start: int, stop: int) -> dict[str, object]:
    """A safetensors header's entry; a dtype that the format has no name for is bytes, in one more dimension."""
    name = _DTYPE_NAMES.get(tensor.dtype)
    shape = list(tensor.shape) if name else [*tensor.shape, tensor.element_size()]
    return {"dtype": name or "U8", "shape": shape, "data_offsets": [start, stop]}


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as a contiguous one on the CPU; the same one where it is that already."""
    return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()


class PackedTensors:
    """Appends tensors to `tensors-00000.safetensors` and its successors in one folder."""

    def __init__(self, folder: Path, *, header_room: int, metadata: Mapping[str, str]) -> None:
        self._folder = folder
        self._room = header_room + -(header_room + 8) % _ALIGNMENT
        self._metadata = dict(metadata)
        self._number = -1
        self._stream: BinaryIO | None = None
        self._entries: dict[str, object] = {}
        self._header_size = 0
        self._position = 0
        self.bytes_written = 0

    def append(self, name: str, tensor: torch.Tensor) -> Data:
        """Write the values of a dense tensor now; what happens to it later does not matter."""
        values = dense(tensor)
        size = values.numel() * values.element_size()
        stream = self._stream_with_room(name)
        start, stop = self._position, self._position + size
        self._entries[name] = header_entry(values, start, stop)
        _write_all(stream, raw_bytes(values))
        self._position = stop
        self.bytes_written += size
        base = 8 + self._room
        return Data(TENSOR_FILE.format(number=self._number), base + start, base + stop)

    def close(self) -> None:
        """Write the header of the file that is open."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        with stream:
            header = json.dumps({"__metadata__": self._metadata, **self._entries}, separators=(",", ":")).encode()
            stream.seek(0)
            stream.write(self._room.to_bytes(8, "little") + header.ljust(self._room))

    def _stream_with_room(self, name: str) -> BinaryIO:
        entry_size = len(json.dumps(name)) + 160  # a name, a dtype, up to eight dimensions, two offsets
        if self._stream is not None and self._header_size + entry_size > self._room:
            self.close()
        if self._stream is None:
            self._number += 1
            self._stream = (self._folder / TENSOR_FILE.format(number=self._number)).open("wb", buffering=0)
            self._stream.seek(8 + self._room)
            self._entries = {}
            self._header_size = len(json.dumps(self._metadata)) + 64
            self._position = 0
        self._header_size += entry_size
        return self._stream


def _write_all(stream: BinaryIO, data: memoryview) -> None:
    """An unbuffered stream may take less than it is given."""
    while data:
        data = data[stream.write(data) :]


def write_safetensors(path: Path, tensor: torch.Tensor) -> None:
    """One tensor under the key `data`, as transformers' debugger writes it."""
    values = dense(tensor)
    size = values.numel() * values.element_size()
    header = json.dumps({"data": header_entry(values, 0, size)}, separators=(",", ":")).encode()
    header = header.ljust(len(header) + -len(header) % 8)
    with path.open("wb", buffering=0) as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        _write_all(stream, raw_bytes(values))
