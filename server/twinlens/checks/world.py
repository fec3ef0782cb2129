"""What a name means, across files: the resolver that every check asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from twinlens.checks.modules import Class, External, Imported, Meaning, Module, Value, is_builtin, read_module
from twinlens.source.definitions import dotted_name, read_source

_DEEPEST = 12
_HEADER = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:", re.MULTILINE)
# Classes of transformers whose source is not read: they are modules, and declare nothing.
KNOWN_MODULES = ("PreTrainedModel", "GradientCheckpointingLayer")
_NEVER_READ = ("torch", "numpy")
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Header:
    """A module-level class statement; `line` counts from 1."""

    path: Path
    line: int
    name: str
    bases: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Sources:
    """The files that were parsed, each until it changes on disk; for as long as whoever checks wants to keep them."""

    _read: dict[Path, tuple[tuple[int, int], Module | None]] = field(default_factory=dict)
    _headers: dict[Path, tuple[int, list[Header]]] = field(default_factory=dict)

    def module_at(self, path: Path) -> Module | None:
        """The module of a file; None where there is none that can be read and parsed."""
        try:
            status = path.stat()
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            try:
                known = stamp, read_module(path, read_source(path))
            except (OSError, SyntaxError):
                known = stamp, None
            self._read[path] = known
        return known[1]

    def headers_at(self, path: Path) -> list[Header]:
        """The class statements of a file, without parsing it."""
        try:
            stamp = path.stat().st_mtime_ns
            known = self._headers.get(path)
            if known is None or known[0] != stamp:
                known = stamp, _headers(path)
                self._headers[path] = known
        except OSError:
            return []
        return known[1]


@dataclass(frozen=True, eq=False)
class World:
    """The files that can be read beside the one that is checked, as they are at one moment.

    `models` are the folders of the library's models (`.../transformers/models`).
    """

    models: tuple[Path, ...] = ()
    sources: Sources = field(default_factory=Sources)
    _modules: dict[Path, Module | None] = field(default_factory=dict)
    _meanings: dict[tuple[Module, str], Meaning | None] = field(default_factory=dict)

    @cached_property
    def package(self) -> Path | None:
        """The folder of transformers, where the library is a part of it."""
        return next((root.parent for root in self.models if (root.parent / "modeling_outputs.py").is_file()), None)

    @cached_property
    def library_files(self) -> tuple[Path, ...]:
        """The files of the library that may define module classes."""
        shared = sorted(self.package.glob("*.py")) if self.package else []
        return tuple(shared + sorted(path for root in self.models for path in root.rglob("modeling_*.py")))

    @cached_property
    def library_classes(self) -> dict[str, tuple[Header, ...]]:
        """The class statements of the library, by name."""
        found: dict[str, list[Header]] = {}
        for path in self.library_files:
            for header in self.sources.headers_at(path):
                found.setdefault(header.name, []).append(header)
        return {name: tuple(headers) for name, headers in found.items()}

    @cached_property
    def library_modules(self) -> dict[str, bool]:
        """Each class name of the library, and whether it is an `nn.Module`, as far as the names of its bases tell."""
        bases = {
            name: {base for header in headers for base in header.bases}
            for name, headers in self.library_classes.items()
        }
        modules = {name for name, names in bases.items() if any(map(_names_a_module, names))}
        while True:
            below = {name for name, names in bases.items() if name not in modules and not names.isdisjoint(modules)}
            if not below:
                return {name: name in modules for name in bases}
            modules |= below

    def module_at(self, path: Path) -> Module | None:
        """The module of a file; None where there is none that can be read and parsed."""
        if path not in self._modules:
            self._modules[path] = self.sources.module_at(path)
        return self._modules[path]

    def module_of(self, path: Path, text: str) -> Module:
        """The module of `text` as typed, which need not be what the file `path` holds.

        Raises `SyntaxError` where it does not parse.
        """
        saved = self.module_at(path)
        return saved if saved is not None and saved.text == text else read_module(path, text)

    def library_class(self, name: str) -> Class | None:
        """The class of the library with this name, if there is one and no second."""
        headers = self.library_classes.get(name, ())
        module = self.module_at(headers[0].path) if len(headers) == 1 else None
        return module.classes.get(name) if module else None

    def meaning(self, module: Module, dotted: str) -> Meaning | None:
        """What `dotted` means in `module`; None where nothing there binds its first name."""
        key = (module, dotted)
        if key not in self._meanings:
            self._meanings[key] = self._meaning(module, dotted, 0)
        return self._meanings[key]

    def _meaning(self, module: Module, dotted: str, depth: int) -> Meaning | None:
        head, *rest = dotted.split(".")
        found = self._bound(module, head, depth)
        for attribute in rest:
            if isinstance(found, Module):
                found = self._bound(found, attribute, depth + 1)
            elif isinstance(found, External):
                found = External(f"{found.dotted}.{attribute}")
            elif found is not None:
                return External(dotted)
        if isinstance(found, Value) and depth < _DEEPEST and isinstance(found.node, (ast.Name, ast.Attribute)):
            alias = dotted_name(found.node)
            return self._meaning(found.module, alias, depth + 1) or found
        return found

    def _bound(self, module: Module, name: str, depth: int) -> Meaning | None:
        for table in (module.classes, module.functions, module.values):
            if name in table:
                return table[name]
        if name in module.imports:
            return self._imported(module, module.imports[name], depth)
        for everything in module.imports_everything:
            source = self.located(module, everything)
            found = self._bound(source, name, depth + 1) if source and depth < _DEEPEST else None
            if found is not None:
                return found
        if module.imports_everything:
            return External(name)
        return External(f"builtins.{name}") if is_builtin(name) else None

    def _imported(self, module: Module, imported: Imported, depth: int) -> Meaning:
        external = External(".".join(filter(None, [imported.module, imported.name])))
        if depth > _DEEPEST:
            return external
        source = self.located(module, imported)
        if source is None:
            return self._of_transformers(imported) or external
        if imported.name is None:
            return source
        submodule = self.located(source, Imported(imported.name, None, 1)) if source.path.stem == "__init__" else None
        found = submodule or self._bound(source, imported.name, depth + 1)
        return found or self._of_transformers(imported) or external

    def _of_transformers(self, imported: Imported) -> Meaning | None:
        """A class that transformers hands on lazily, under no name that its source binds."""
        is_from_package = imported.module.split(".")[0] == "transformers" or imported.level > 0
        is_class = imported.name is not None and imported.name[:1].isupper() and imported.name not in KNOWN_MODULES
        return self.library_class(imported.name) if is_from_package and imported.name and is_class else None

    def located(self, module: Module, imported: Imported) -> Module | None:
        """The module that an import names, where its file is at hand."""
        parts = imported.module.split(".") if imported.module else []
        for folder in self._folders(module.path, imported.level, parts):
            target = folder.joinpath(*parts)
            for path in (target.with_name(f"{target.name}.py") if parts else None, target / "__init__.py"):
                if path is not None and (found := self.module_at(path)) is not None:
                    return found
        return None

    def _folders(self, path: Path, level: int, parts: list[str]) -> Iterator[Path]:
        if level:
            yield path.parents[level - 1] if level <= len(path.parents) else path.parent
            return
        if parts[0] == "transformers" and self.package:
            yield self.package.parent
        elif parts[0] not in _NEVER_READ:
            above = _above_package(path)
            yield path.parent
            if above.name not in _INSTALLED or (above / parts[0]) in path.parents:
                yield above


def _headers(path: Path) -> list[Header]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [
        Header(
            path, text.count("\n", 0, found.start()) + 1, found[1], tuple(re.split(r"[\s,]+", (found[2] or "").strip()))
        )
        for found in _HEADER.finditer(text)
    ]


def _names_a_module(base: str) -> bool:
    return base.startswith(("nn.", "torch.nn.")) or base in KNOWN_MODULES


def _above_package(path: Path) -> Path:
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder
