"""Notice a module that is imported, just before it is executed and just after."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

Around = Callable[[ModuleType], AbstractContextManager[None]]


@contextmanager
def watch_imports(around: Around) -> Generator[None]:
    """While it lasts, each module that is imported is executed within `around(module)`."""
    finder = _Finder(around)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what the finders behind it find, and lets its loader execute it."""

    def __init__(self, around: Around) -> None:
        self._around = around

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._around)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads as another loader does; the module that comes of it knows that one only."""

    def __init__(self, loader: Any, around: Around) -> None:
        self._loader = loader
        self._around = around

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with self._around(module):
            self._loader.exec_module(module)
