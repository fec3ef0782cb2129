"""The settings of section `twinlens`, as the client's `workspace/configuration` answers them.

A value of the wrong type counts as not set: the editor marks it in settings.json, and the log names it.
"""

from __future__ import annotations

import dataclasses
import logging
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from twinlens.similarity.flags import DEFAULT_THRESHOLD
from twinlens.skips.lints.run import RARE

SECTION = "twinlens"

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SimilarClassesSettings:
    """Whether classes are flagged, and from which resemblance on (1 means identical)."""

    flag: bool = True
    threshold: float = DEFAULT_THRESHOLD


@dataclass(frozen=True, slots=True)
class SkipsSettings:
    """The most models that skip a test for each of these skips to be flagged as rare."""

    rare: int = RARE


@dataclass(frozen=True, slots=True)
class Settings:
    """One field a setting: `twinlens.library` is `library`; a nested section is a dataclass of its own."""

    library: tuple[str, ...] = ()
    embedder: str = ""
    similar_classes: SimilarClassesSettings = SimilarClassesSettings()
    mlinter: bool = True
    skips: SkipsSettings = SkipsSettings()


class Live(Generic[T]):
    """A value that changes, and who wants to know."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._listeners: list[Callable[[T], None]] = []

    @property
    def current(self) -> T:
        """The value now."""
        return self._value

    def on_change(self, listener: Callable[[T], None]) -> None:
        """Calls `listener` with each new value."""
        self._listeners.append(listener)

    def set(self, value: T) -> None:
        """Takes a new value; an equal one is not news."""
        if value == self._value:
            return
        self._value = value
        for listener in self._listeners:
            listener(value)


def read_settings(raw: object) -> Settings:
    """The settings in the client's answer for the section, which is an object with camelCase keys, or null."""
    return _read(Settings, raw, SECTION)


def _read(shape: type[T], raw: object, section: str) -> T:
    given = raw if isinstance(raw, dict) else {}
    hints = get_type_hints(shape)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(shape):  # ty: ignore[invalid-argument-type]
        key = _camel(field.name)
        value = given.get(key)
        if dataclasses.is_dataclass(hints[field.name]):
            values[field.name] = _read(hints[field.name], value, f"{section}.{key}")
        elif value is None:
            continue
        elif _fits(value, hints[field.name]):
            values[field.name] = tuple(value) if isinstance(value, list) else value
        else:
            logger.warning("The setting %s.%s is ignored: it cannot be %r.", section, key, value)
    return shape(**values)


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
