"""Between the record and the lines of `trace.jsonl`. Format version 1. Standard library only.

Each line is one JSON object with a `kind`; UTF-8, `\\n`; a last line that is cut short is no line. Non-finite floats
are the strings `"NaN"`, `"Infinity"`, `"-Infinity"`, never NaN literals.

=============  ====================================================================================================
kind           fields
=============  ====================================================================================================
`trace`        the first line: `format`, and each field of `Info` under its own name
`module`       each field of `Module`; `source` is `[file, line, class_line]` or null
`parameter`    each field of `Parameter`; `tensor` is a TENSOR, `fingerprint` three strings or null
`forward`      `index`, `inputs_hash`: a forward of the root begins
`enter`        `call`, `parent`, `forward`, `path`, `class`, `number`, `tensors`, `inputs`; `function` where true
`leave`        `call`, `seconds`, `tensors`, `outputs`; or `call`, `seconds`, `error` `[type, message, traceback]`
`forward_end`  `index`, `status`, `seconds`
`end`          `seconds`: the last line
=============  ====================================================================================================

`tensors` lists the tensors that this line is the first to mention, each a TENSOR: `{"id", "shape", "dtype", "stride",
"device", "storage", "statistics": [10 numbers in the order of Statistics] or null}` and where they apply `data`,
`tokens`, `channels` (`[n, start, stop]`: bytes of `tensors-<n>.safetensors`), `omitted`, `placement`, `local` (of a
DTensor's shard: `[start, shape]`; `shape` is the whole's). `inputs`, `outputs` list SLOTs: `[place, id]` for a
tensor, `[place, "text"]` for anything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from twinlens.tracing.record import (
    FORMAT_VERSION,
    TENSOR_FILE,
    Call,
    Data,
    Error,
    Fingerprint,
    Forward,
    Info,
    Module,
    Parameter,
    Piece,
    Slot,
    Source,
    Statistics,
    Tensor,
)

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode


def finite_json(value: Any) -> Any:
    """`value` with each non-finite float as a string, tuples as lists, and what JSON has no word for as its `str`."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _NAMES_OF_NON_FINITE[str(value)]
    if isinstance(value, Mapping):
        return {str(key): finite_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((finite_json(item) for item in value), key=str)
    return str(value)


_NAMES_OF_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def trace_line(info: Info) -> str:
    return _encode({"kind": "trace", "format": FORMAT_VERSION, **finite_json(asdict(info))})


def module_line(module: Module) -> str:
    source = module.source
    fields: dict[str, Any] = {
        "kind": "module",
        "path": module.path,
        "aliases": module.aliases,
        "class_name": module.class_name,
        "qualified_name": module.qualified_name,
        "source": [source.file, source.line, source.class_line] if source else None,
        "training": module.training,
        "attributes": finite_json(module.attributes),
        "description": module.description,
    }
    return _encode(fields)


def parameter_line(parameter: Parameter) -> str:
    fields: dict[str, Any] = {
        "kind": "parameter",
        "name": parameter.name,
        "aliases": parameter.aliases,
        "is_buffer": parameter.is_buffer,
        "is_persistent": parameter.is_persistent,
        "tensor": _tensor_fields(parameter.tensor),
        "fingerprint": parameter.fingerprint,
    }
    return _encode(fields)


def forward_line(index: int, inputs_hash: str) -> str:
    return _encode({"kind": "forward", "index": index, "inputs_hash": inputs_hash})


def enter_line(call: Call, new_tensors: Iterable[Tensor]) -> str:
    fields: dict[str, Any] = {
        "kind": "enter",
        "call": call.index,
        "parent": call.parent,
        "forward": call.forward,
        "path": call.path,
        "class": call.class_name,
        "number": call.number,
        "tensors": [_tensor_fields(tensor) for tensor in new_tensors],
        "inputs": _slot_fields(call.inputs),
    }
    if call.is_function:
        fields["function"] = True
    return _encode(fields)


def leave_line(index: int, seconds: float, outputs: Iterable[Slot], new_tensors: Iterable[Tensor]) -> str:
    fields: dict[str, Any] = {
        "kind": "leave",
        "call": index,
        "seconds": seconds,
        "tensors": [_tensor_fields(tensor) for tensor in new_tensors],
        "outputs": _slot_fields(outputs),
    }
    return _encode(fields)


def raise_line(index: int, seconds: float, error: Error) -> str:
    return _encode(
        {"kind": "leave", "call": index, "seconds": seconds, "error": [error.type, error.message, error.traceback]}
    )


def forward_end_line(forward: Forward) -> str:
    return _encode(
        {"kind": "forward_end", "index": forward.index, "status": forward.status, "seconds": forward.seconds}
    )


def end_line(seconds: float) -> str:
    return _encode({"kind": "end", "seconds": seconds})


def _slot_fields(slots: Iterable[Slot]) -> list[tuple[str, int | str]]:
    return [(slot.place, slot.text if slot.tensor is None else slot.tensor.id) for slot in slots]


def _tensor_fields(tensor: Tensor) -> dict[str, Any]:
    statistics = tensor.statistics
    fields: dict[str, Any] = {
        "id": tensor.id,
        "shape": tensor.shape,
        "dtype": tensor.dtype,
        "stride": tensor.stride,
        "device": tensor.device,
        "storage": tensor.storage,
        "statistics": statistics if statistics is None else [finite_json(number) for number in statistics],
    }
    for name, data in (("data", tensor.data), ("tokens", tensor.token_norms), ("channels", tensor.channel_norms)):
        if data is not None:
            fields[name] = _data_fields(data)
    if tensor.omitted:
        fields["omitted"] = tensor.omitted
    if tensor.placement:
        fields["placement"] = tensor.placement
    if tensor.pieces:
        (piece,) = tensor.pieces
        fields["local"] = [piece.start, piece.shape]
        if piece.data is not None:
            fields["data"] = _data_fields(piece.data)
    return fields


def _data_fields(data: Data) -> list[int]:
    return [int(data.file[len("tensors-") : -len(".safetensors")]), data.start, data.stop]


def read_info(fields: Mapping[str, Any]) -> Info:
    """The `trace` line's `Info`; fields that this version does not know are left out."""
    known = {name: fields[name] for name in Info.__dataclass_fields__ if name in fields}
    return Info(**known)


def read_module(fields: Mapping[str, Any]) -> Module:
    source = fields["source"]
    return Module(
        path=fields["path"],
        aliases=tuple(fields["aliases"]),
        class_name=fields["class_name"],
        qualified_name=fields["qualified_name"],
        source=Source(*source) if source else None,
        training=fields["training"],
        attributes=fields["attributes"],
        description=fields["description"],
    )


def read_parameter(fields: Mapping[str, Any], rank: int) -> Parameter:
    fingerprint = fields["fingerprint"]
    return Parameter(
        name=fields["name"],
        aliases=tuple(fields["aliases"]),
        is_buffer=fields["is_buffer"],
        is_persistent=fields["is_persistent"],
        tensor=read_tensor(fields["tensor"], rank),
        fingerprint=Fingerprint(*fingerprint) if fingerprint else None,
    )


def read_call(
    fields: Mapping[str, Any],
    inputs: tuple[Slot, ...],
    outputs: tuple[Slot, ...] = (),
    seconds: float | None = None,
    error: Error | None = None,
) -> Call:
    """The call of an `enter` line with these `fields`, and what was said of it as it was left."""
    return Call(
        fields["call"],
        fields["parent"],
        fields["forward"],
        fields["path"],
        fields["class"],
        fields["number"],
        inputs,
        outputs,
        seconds,
        error,
        fields.get("function", False),
    )


def read_slots(fields: Iterable[tuple[str, int | str]], tensors: Mapping[int, Tensor]) -> tuple[Slot, ...]:
    """`tensors` holds all that the record mentioned so far, by id.

    Raises:
        KeyError: a slot names a tensor that no line has described.
    """
    return tuple(
        [Slot(place, None, value) if isinstance(value, str) else Slot(place, tensors[value]) for place, value in fields]
    )


def read_tensor(fields: Mapping[str, Any], rank: int) -> Tensor:
    statistics = fields["statistics"]
    data = _read_data(fields.get("data"))
    local = fields.get("local")
    return Tensor(
        id=fields["id"],
        shape=tuple(fields["shape"]),
        dtype=fields["dtype"],
        stride=tuple(fields["stride"]),
        device=fields["device"],
        storage=fields["storage"],
        statistics=_read_statistics(statistics) if statistics else None,
        data=None if local else data,
        token_norms=_read_data(fields.get("tokens")),
        channel_norms=_read_data(fields.get("channels")),
        omitted=fields.get("omitted", ""),
        placement=fields.get("placement", ""),
        pieces=(Piece(rank, tuple(local[0]), tuple(local[1]), data),) if local else (),
    )


def _read_statistics(numbers: list[Any]) -> Statistics:
    """`float` reads the names of the non-finite as well as a number that JSON wrote without a point."""
    return Statistics._make([*map(float, numbers[:6]), *numbers[6:]])


def _read_data(fields: list[int] | None) -> Data | None:
    if fields is None:
        return None
    number, start, stop = fields
    return Data(TENSOR_FILE.format(number=number), start, stop)
