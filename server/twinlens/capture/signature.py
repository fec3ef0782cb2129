"""Where a forward's arguments stand, so that a decorator can read and change one however it was given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ForwardSignature:
    """The parameters of a forward after `self`: the place of each positional one, and whether it takes any keyword."""

    places: Mapping[str, int]
    keywords: frozenset[str]
    takes_any: bool

    @classmethod
    def of(cls, forward: Callable[..., Any]) -> ForwardSignature:
        """That of `forward`, or of what it wraps where it is decorated already."""
        parameters = list(inspect.signature(forward).parameters.values())[1:]
        return cls(
            places={
                parameter.name: place for place, parameter in enumerate(parameters) if parameter.kind in _POSITIONAL
            },
            keywords=frozenset(
                parameter.name
                for parameter in parameters
                if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            ),
            takes_any=any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters),
        )

    def takes(self, name: str) -> bool:
        """Whether the forward accepts an argument `name`."""
        return self.takes_any or name in self.keywords

    def given(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What the call gives for `name`, or None."""
        if name in kwargs:
            return kwargs[name]
        place = self.places.get(name, len(args))
        return args[place] if place < len(args) else None

    def give(
        self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call's arguments with `value` for `name`, where the call gives it or else as a keyword."""
        place = self.places.get(name, len(args))
        if name not in kwargs and place < len(args):
            return (*args[:place], value, *args[place + 1 :]), kwargs
        return args, {**kwargs, name: value}
