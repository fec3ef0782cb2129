"""Facts as JSON values and back: nested lists, each led by a number that says what it was."""

from __future__ import annotations

from typing import Any

from twinlens.skips import facts

FORMAT = 1
"""Raise it whenever `facts` changes: what was remembered in another format is read anew from source."""

_KINDS = (
    facts.File,
    facts.Class,
    facts.Function,
    facts.Value,
    facts.Deleted,
    facts.Import,
    facts.Decorator,
    facts.Skip,
    facts.Stop,
    facts.Call,
    facts.Work,
    facts.Branch,
    facts.Loop,
)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FIELDS = {kind: tuple(kind.__dataclass_fields__) for kind in _KINDS}
_TUPLE = -1
_FROZENSET = -2


def encode(value: Any) -> Any:
    """A fact, or part of one, as a JSON value."""
    if isinstance(value, tuple):
        return [_TUPLE, *map(encode, value)] if value else [_TUPLE]
    if isinstance(value, frozenset):
        return [_FROZENSET, *sorted(value)]
    number = _NUMBERS.get(type(value))
    if number is None:
        return value
    return [number, *(encode(getattr(value, name)) for name in _FIELDS[type(value)])]


def decode(value: Any) -> Any:
    """What `encode` was given. Raises `ValueError` or `TypeError` for anything that it did not make."""
    if not isinstance(value, list):
        return value
    number = value[0] if value else None
    if number == _TUPLE:
        return tuple(map(decode, value[1:]))
    if number == _FROZENSET:
        return frozenset(value[1:])
    if not isinstance(number, int) or not 0 <= number < len(_KINDS):
        raise ValueError(f"no fact has the number {number!r}")
    return _KINDS[number](*map(decode, value[1:]))
