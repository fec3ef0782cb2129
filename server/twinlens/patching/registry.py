"""Which classes are to be replaced by which: one registry a process."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping

from torch import nn

ModuleClass = type[nn.Module]


class PatchMapping:
    """The registered replacements at one moment.

    A key that is the name of a loaded module class means that class alone; any other key is a pattern.
    """

    def __init__(self, replacements: Mapping[str, ModuleClass]) -> None:
        self.replacements = replacements
        self._patterns: list[tuple[re.Pattern[str], ModuleClass]] = []
        self.read_loaded_classes()

    def read_loaded_classes(self) -> None:
        """Tell names from patterns by the module classes that are loaded now."""
        new = set(self.replacements.values())
        names = {cls.__name__ for cls in _loaded_module_classes() if cls not in new}
        self._patterns = [(re.compile(key), cls) for key, cls in self.replacements.items() if key not in names]

    def by_name(self, name: str) -> ModuleClass | None:
        """The replacement registered under exactly `name`, or None."""
        return self.replacements.get(name)

    def by_pattern(self, name: str) -> ModuleClass | None:
        """The replacement of the first registered pattern that `re.search` finds in `name`, or None."""
        return next((replacement for pattern, replacement in self._patterns if pattern.search(name)), None)

    def replacement_for(self, name: str) -> ModuleClass | None:
        """What replaces the class `name`: an exact name wins over patterns."""
        return self.by_name(name) or self.by_pattern(name)


class PatchRegistry:
    """The registered replacements, by class name or pattern; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replacements: dict[str, ModuleClass] = {}

    def register(self, mapping: Mapping[str, ModuleClass], overwrite: bool) -> None:
        """Add all of `mapping`, or raise and add none of it."""
        for key, replacement in mapping.items():
            _check(key, replacement)
        with self._lock:
            taken = [key for key in mapping if key in self._replacements]
            if taken and not overwrite:
                raise ValueError(f"{_listed(taken)} already registered: pass overwrite=True to replace what is there")
            self._replacements.update(mapping)

    def unregister(self, keys: Iterable[str]) -> None:
        """Remove all of `keys`, or raise and remove none of them."""
        if isinstance(keys, str):
            raise TypeError(f"keys is the string {keys!r}: give a list of keys")
        wanted = list(dict.fromkeys(keys))
        with self._lock:
            missing = [key for key in wanted if key not in self._replacements]
            if missing:
                raise ValueError(f"{_listed(missing)} not registered: nothing was unregistered")
            for key in wanted:
                del self._replacements[key]

    def snapshot(self) -> dict[str, ModuleClass]:
        """A copy of what is registered."""
        with self._lock:
            return dict(self._replacements)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._replacements.clear()


_registry = PatchRegistry()


def register_patch_mapping(mapping: Mapping[str, ModuleClass], overwrite: bool = False) -> None:
    """Register replacements: the key is a class name or a regular expression, the value an `nn.Module` subclass.

    A key that is the name of a class replaces that class alone, and wins over patterns. Patterns are tried with
    `re.search`, in the order of registration: without anchors they match anywhere in a class name.

    Raises ValueError for a key that is registered already, unless `overwrite`, and for a pattern that does not compile;
    TypeError for a value that is no `nn.Module` subclass. When it raises, nothing of `mapping` is registered.
    """
    _registry.register(mapping, overwrite)


def unregister_patch_mapping(keys: Iterable[str]) -> None:
    """Remove the entries that were registered under `keys`.

    Raises ValueError where one of them is not registered, and then removes none.
    """
    _registry.unregister(keys)


def get_patch_mapping() -> dict[str, ModuleClass]:
    """A copy of the registered replacements, in the order of registration."""
    return _registry.snapshot()


def clear_patch_mapping() -> None:
    """Remove every registered replacement."""
    _registry.clear()


def _check(key: str, replacement: object) -> None:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is a {type(key).__name__}: give a class name or a pattern")
    if not isinstance(replacement, type):
        raise TypeError(f"the replacement for {key!r} is {replacement!r}: it must be a class")
    if not issubclass(replacement, nn.Module):
        raise TypeError(f"the replacement for {key!r}, {replacement.__name__}, is no subclass of nn.Module")
    try:
        re.compile(key)
    except re.error as error:
        raise ValueError(f"the pattern {key!r} does not compile: {error}") from error


def _listed(keys: list[str]) -> str:
    return ", ".join(map(repr, keys)) + (" is" if len(keys) == 1 else " are")


def _loaded_module_classes() -> Iterator[ModuleClass]:
    seen: set[ModuleClass] = set()
    waiting: list[ModuleClass] = [nn.Module]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            if cls not in seen:
                seen.add(cls)
                waiting.append(cls)
                yield cls
