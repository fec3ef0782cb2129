"""Look up what a config says of a model's inputs, whichever of its sub-configs says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Facts:
    """Looks a field up in a config and then in its sub-configs, those named like `first` before the others."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def get(self, *names: str, first: str = "", default: Any = None) -> Any:
        for config in self.ordered(first):
            for name in names:
                value = getattr(config, name, None)
                if value is not None:
                    return value
        return default

    def integer(self, *names: str, first: str = "", default: int) -> int:
        value = self.get(*names, first=first, default=default)
        while isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, Mapping):
            value = next(iter(value.values()), default)
        return value if isinstance(value, int) else default

    def ordered(self, first: str) -> Iterator[Any]:
        """The config and its sub-configs, those named like `first` in front."""
        subs = list(_sub_configs(self.config))
        if first:
            yield from (sub for name, sub in subs if first in name)
        yield self.config
        yield from (sub for name, sub in subs if not first or first not in name)


def _sub_configs(config: Any, depth: int = 3) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(config).items()):
        if hasattr(value, "to_dict") and depth:
            yield name, value
            yield from ((f"{name}.{inner}", sub) for inner, sub in _sub_configs(value, depth - 1))
