"""Take a module's arguments or results apart: tensors and plain values, each with its place."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

_ADDRESS = re.compile(r"object at 0x[0-9A-Fa-f]+")
_LONGEST_TEXT = 400
_DEEPEST_OBJECT = 5
_LONGEST_PLAIN_SEQUENCE = 32


def without_addresses(text: str) -> str:
    """`text` with each memory address replaced, so that two runs read the same."""
    return _ADDRESS.sub("object at 0xXXXXXXXX", text)


def argument_leaves(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, torch.Tensor | str]]:
    """The leaves of a call's arguments; `names` are the forward's positional parameters (see `positional_names`)."""
    fixed = [name for name in names if not name.startswith("*")]
    rest = next((name for name in names if name.startswith("*")), "*args")
    for index, value in enumerate(args):
        name = fixed[index] if index < len(fixed) else f"{rest}[{index - len(fixed)}]"
        yield from leaves(value, name)
    for name, value in kwargs.items():
        yield from leaves(value, name)


def positional_names(forward: Any) -> tuple[str, ...]:
    """Names of `forward`'s positional parameters, `self` apart, a `*args` last; none where it tells no signature."""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return ()
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(
        f"*{parameter.name}" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else parameter.name
        for parameter in parameters
        if parameter.kind in named or parameter.kind is inspect.Parameter.VAR_POSITIONAL
    )


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, torch.Tensor | str]]:
    """Every tensor in `value` and the text of everything else, each with its place.

    Goes into lists, tuples, named tuples, mappings (`ModelOutput`), dataclasses, and objects that hold tensors in
    their attributes, such as caches. What holds no tensor is one text: its `repr`, or its class if it is no plain
    value.
    """
    if isinstance(value, torch.Tensor):
        yield place, value
        return
    parts = _parts(value)
    if not parts or not holds_tensor(value):
        if isinstance(value, (list, tuple)) and 0 < len(value) <= _LONGEST_PLAIN_SEQUENCE:
            for key, part in parts:
                yield from leaves(part, _joined(place, key))
        else:
            yield place, _text(value)
        return
    for key, part in parts:
        if _is_plain_container(value) or holds_tensor(part):
            yield from leaves(part, _joined(place, key))


def _is_plain_container(value: Any) -> bool:
    return isinstance(value, (list, tuple, Mapping)) or dataclasses.is_dataclass(value)


def _parts(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if isinstance(value, (type, nn.Module)) or callable(value) or not hasattr(value, "__dict__"):
        return []
    return [(name, part) for name, part in vars(value).items() if not name.startswith("_")]


def holds_tensor(value: Any, depth: int = _DEEPEST_OBJECT, seen: set[int] | None = None) -> bool:
    """Whether `value` is a tensor or has one inside, no deeper than `depth`."""
    seen = set() if seen is None else seen
    if isinstance(value, torch.Tensor):
        return True
    if depth == 0 or value is None or isinstance(value, (bool, int, float, str)) or id(value) in seen:
        return False
    seen.add(id(value))
    return any(holds_tensor(part, depth - 1, seen) for _key, part in _parts(value))


def _joined(place: str, key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{place}.{key}" if place else key
    return f"{place}[{key!r}]"


_TELLING = (bool, int, float, complex, str, bytes, slice, range, list, tuple, Mapping, set, frozenset, enum.Enum)
_TELLING_OF_TORCH = (torch.dtype, torch.device, torch.Size)
_TELLING_MODULES = ("numpy", "builtins", "pathlib")


def _text(value: Any) -> str:
    is_telling = value is None or isinstance(value, _TELLING + _TELLING_OF_TORCH)
    if is_telling or type(value).__module__ in _TELLING_MODULES:
        text = without_addresses(repr(value))
    else:
        text = f"<{type(value).__qualname__}>"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
