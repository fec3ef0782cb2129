"""What a forward returns: fields put in, and turned into a tuple."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, MutableMapping
from typing import Any

from torch import nn


def field(outputs: Any, name: str) -> Any:
    """The field `name` of a dataclass, `ModelOutput` or dict, or None."""
    if isinstance(outputs, Mapping):
        return outputs.get(name)
    return getattr(outputs, name, None)


def with_fields(outputs: Any, fields: Mapping[str, tuple[Any, ...]], model: nn.Module) -> Any:
    """`outputs` with `fields` set: changed in place, or a copy where it is a frozen dataclass.

    Raises TypeError where `outputs` is neither a `ModelOutput`, a dataclass nor a dict, or has no such field.
    """
    if isinstance(outputs, MutableMapping):
        for name, value in fields.items():
            outputs[name] = value
        return outputs
    if not dataclasses.is_dataclass(outputs) or isinstance(outputs, type):
        raise TypeError(
            f"{type(model).__name__}.forward returned a {type(outputs).__name__}: to receive {_listed(fields)}, "
            "it must return a ModelOutput, a dataclass or a dict"
        )
    known = {field.name for field in dataclasses.fields(outputs)}
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise TypeError(
            f"{type(outputs).__name__}, which {type(model).__name__}.forward returns, has no field {_listed(unknown)}: "
            "add it there, or correct the name in _can_record_outputs"
        )
    if type(outputs).__dataclass_params__.frozen:
        return dataclasses.replace(outputs, **fields)
    for name, value in fields.items():
        setattr(outputs, name, value)
    return outputs


def as_tuple(outputs: Any) -> Any:
    """The fields of `outputs` that are not None, as a tuple; what has no fields is returned as it is."""
    if hasattr(outputs, "to_tuple"):
        return outputs.to_tuple()
    if isinstance(outputs, Mapping):
        values = list(outputs.values())
    elif dataclasses.is_dataclass(outputs):
        values = [getattr(outputs, field.name) for field in dataclasses.fields(outputs)]
    else:
        return outputs
    return tuple(value for value in values if value is not None)


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))
