"""Replaced classes for the length of a block: the names that stand for them in every loaded module."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType

from torch import nn

from twinlens.patching.built import BuiltModels
from twinlens.patching.imports import watch_imports
from twinlens.patching.registry import ModuleClass, PatchMapping, get_patch_mapping


@contextmanager
def apply_patches() -> Generator[None]:
    """While the block runs, the names of registered classes stand for their replacements, in every loaded package.

    A model that is built in the block, by its constructor, `from_config` or `from_pretrained`, holds the replacements,
    and its output recorders name them. The names are put back when the last block that changed them ends, also when it
    raises. Modules imported in the block are defined with the original classes, and then patched like the others.
    A pattern leaves torch's own classes alone, an exact name does not. The module that defines a replacement keeps the
    names that it imported, so that a replacement can hold an original. Names belong to the process: models that another
    thread builds meanwhile are patched as well.
    """
    replacements = get_patch_mapping()
    if not replacements:
        yield
        return
    mapping = PatchMapping(replacements)
    with BuiltModels(mapping).patched(), _names.standing_for(mapping):
        yield


@dataclass
class _Name:
    """A module's name for a replaced class: what it meant, and what each running block wants it to mean."""

    module: ModuleType
    attribute: str
    original: ModuleClass
    wanted: dict[PatchMapping, ModuleClass] = field(default_factory=dict)

    @property
    def meant(self) -> ModuleClass:
        return list(self.wanted.values())[-1] if self.wanted else self.original


class _Names:
    """Every name that running blocks have changed; blocks of several threads may overlap."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._names: dict[tuple[int, str], _Name] = {}
        # Each running block, with the names that meant one of its replacements without its doing.
        self._blocks: dict[PatchMapping, set[tuple[int, str]]] = {}
        self._imports = 0

    @contextmanager
    def standing_for(self, mapping: PatchMapping) -> Generator[None]:
        with watch_imports(self.set_aside):
            self._enter(mapping)
            try:
                yield
            finally:
                self._leave(mapping)

    @contextmanager
    def set_aside(self, imported: ModuleType) -> Generator[None]:
        """While it lasts names mean their originals, so that `imported` is defined with those; then it is patched."""
        with self._lock:
            self._imports += 1
            for name in self._names.values():
                setattr(name.module, name.attribute, name.original)
        try:
            yield
        finally:
            with self._lock:
                self._imports -= 1
                for mapping in self._blocks:
                    mapping.read_loaded_classes()
                    self._change([imported], mapping)
                if not self._imports:
                    for name in self._names.values():
                        setattr(name.module, name.attribute, name.meant)

    def _enter(self, mapping: PatchMapping) -> None:
        with self._lock:
            self._blocks[mapping] = set()
            self._change(list(sys.modules.values()), mapping)

    def _change(self, modules: Iterable[ModuleType], mapping: PatchMapping) -> None:
        for module in modules:
            for attribute, original in _module_classes(module):
                name = self._names.get((id(module), attribute))
                original = name.original if name else original
                if original in mapping.replacements.values():
                    self._blocks[mapping].add((id(module), attribute))
                    continue
                replacement = _replacement(original, module, mapping)
                if replacement is None:
                    continue
                if name is None:
                    name = self._names[id(module), attribute] = _Name(module, attribute, original)
                name.wanted[mapping] = replacement
                if not self._imports:
                    setattr(module, attribute, replacement)

    def _leave(self, mapping: PatchMapping) -> None:
        with self._lock:
            rightful = self._blocks.pop(mapping)
            retired: dict[tuple[str, ModuleClass], ModuleClass] = {}
            for key, name in list(self._names.items()):
                replacement = name.wanted.pop(mapping, None)
                if replacement is None:
                    continue
                if vars(name.module).get(name.attribute) is replacement:
                    setattr(name.module, name.attribute, name.meant)
                if not name.wanted:
                    del self._names[key]
                retired[name.original.__name__, replacement] = name.original
            self._take_back_late_names(retired, rightful)

    def _take_back_late_names(
        self, retired: dict[tuple[str, ModuleClass], ModuleClass], rightful: set[tuple[int, str]]
    ) -> None:
        """Take back names that a lazy module looked up while the block ran, and kept."""
        for module in list(sys.modules.values()):
            for attribute, cls in _module_classes(module):
                original = retired.get((attribute, cls))
                key = (id(module), attribute)
                if original is not None and key not in self._names and key not in rightful:
                    setattr(module, attribute, original)


_names = _Names()


def _module_classes(module: object) -> list[tuple[str, ModuleClass]]:
    if not isinstance(module, ModuleType):
        return []
    # Not isinstance: that asks the `__class__` of proxies, which may load things or raise.
    return [
        (attribute, value)
        for attribute, value in list(vars(module).items())
        if issubclass(type(value), type) and issubclass(value, nn.Module)
    ]


def _replacement(cls: ModuleClass, module: ModuleType, mapping: PatchMapping) -> ModuleClass | None:
    """What the name of `cls` in `module` is to stand for, or None where it stays."""
    replacement = mapping.by_name(cls.__name__)
    if replacement is None and not f"{cls.__module__}.".startswith("torch."):
        replacement = mapping.by_pattern(cls.__name__)
    if replacement is None or (replacement.__module__ == module.__name__ != cls.__module__):
        return None
    return replacement
