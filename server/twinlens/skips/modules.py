"""What a name means in a file: its own definitions first, then its imports, followed through the checkout's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlens.skips.facts import Class, File, Function, Import, Value
from twinlens.skips.values import UNKNOWN, evaluate

Load = Callable[[str], File | None]
"""The facts of a file by its path relative to the checkout, with forward slashes; `None` where there is no file."""


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """One file's facts by name."""

    path: str
    file: File
    classes: Mapping[str, Class]
    functions: Mapping[str, Function]
    values: Mapping[str, Value]
    imports: Mapping[str, Import]


@dataclass(frozen=True, slots=True)
class Found:
    """A definition of the checkout, and the module that holds it."""

    module: Module
    definition: Class | Function | Value


@dataclass(frozen=True, slots=True)
class External:
    """A name of a library that the checkout does not hold, by its full dotted name."""

    name: str


class Modules:
    """Every file that was asked for, each looked at once."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._modules: dict[str, Module | None] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._found: dict[tuple[str, str], Found | External | None] = {}

    def module(self, path: str) -> Module | None:
        """The module at a path, or `None` where there is no such file."""
        if path not in self._modules:
            file = self._load(path)
            self._modules[path] = None if file is None else _module(path, file)
        return self._modules[path]

    def replace(self, path: str, file: File) -> Module:
        """Put a module with new facts in the place of an old one; whatever was found before is looked up anew."""
        made = self._modules[path] = _module(path, file)
        self._found.clear()
        self._values.clear()
        return made

    def find(self, module: Module, name: str) -> Found | External | None:
        """What a dotted name means in a module: a definition of the checkout, something external, or nothing at all."""
        key = (module.path, name)
        if key not in self._found:
            self._found[key] = self._find(module, name, frozenset())
        return self._found[key]

    def imported_paths(self, module: Module) -> frozenset[str]:
        """The files that a module's relative imports, and those of `tests`, may name; whether they exist or not."""
        return frozenset(
            candidate
            for imported in module.imports.values()
            if imported.level or imported.module.partition(".")[0] == "tests"
            for candidate in _candidates(module.path, imported)
        )

    def value(self, module: Module, name: str) -> Any:
        """The value of a module's constant, `UNKNOWN` where source does not tell it."""
        key = (module.path, name)
        if key not in self._values:
            self._values[key] = UNKNOWN
            match self.find(module, name):
                case Found(module=home, definition=Value(expression=expression)):
                    self._values[key] = evaluate(expression, ModuleScope(self, home))
        return self._values[key]

    def _find(self, module: Module, name: str, seen: frozenset[tuple[str, str]]) -> Found | External | None:
        head, _, rest = name.partition(".")
        if (module.path, head) in seen:
            return None
        if not rest:
            own = module.classes.get(head) or module.functions.get(head) or module.values.get(head)
            if own is not None:
                return Found(module, own)
        imported = module.imports.get(head)
        if imported is None:
            return None
        return self._find_imported(module, imported, rest, seen | {(module.path, head)})

    def _find_imported(
        self, module: Module, imported: Import, rest: str, seen: frozenset[tuple[str, str]]
    ) -> Found | External | None:
        home = self._imported_module(module, imported.module, imported.level)
        wanted = ".".join(filter(None, (imported.attribute, rest)))
        if home is not None and wanted:
            found = self._find(home, wanted, seen)
            if found is not None or not imported.attribute:
                return found
        if imported.attribute and rest:
            inner = f"{imported.module}.{imported.attribute}" if imported.module else imported.attribute
            submodule = self._imported_module(module, inner, imported.level)
            if submodule is not None:
                return self._find(submodule, rest, seen)
        if home is not None or imported.level:
            return None
        return External(".".join(filter(None, (imported.module, wanted))))

    def _imported_module(self, module: Module, dotted: str, level: int) -> Module | None:
        inner = dotted.replace(".", "/")
        for base in _import_roots(module.path, level):
            stem = f"{base}{inner}"
            candidates = (f"{stem}.py", f"{stem}/__init__.py") if inner else (f"{stem}__init__.py",)
            for candidate in candidates:
                found = self.module(candidate)
                if found is not None:
                    return found
        return None


@dataclass(frozen=True, slots=True)
class ModuleScope:
    """What names mean at the top of a module."""

    modules: Modules
    module: Module
    receiver: str = field(default="", init=False)

    def name(self, name: str) -> Any:
        return self.modules.value(self.module, name)

    def attribute(self, name: str) -> Any:  # noqa: ARG002 - a module has no test case to ask
        return UNKNOWN


def _candidates(path: str, imported: Import) -> Iterator[str]:
    """What an import may name: a file, or one inside the package that it names."""
    dotted = ".".join(filter(None, (imported.module, imported.attribute)))
    for base in _import_roots(path, imported.level):
        for name in (imported.module, dotted):
            yield f"{base}{name.replace('.', '/')}.py"


def _import_roots(path: str, level: int) -> tuple[str, ...]:
    """The folders that an import of a file starts from, each empty or with a slash at its end."""
    folders = path.split("/")[:-1]
    if not level:
        return ("", "src/", "".join(f"{folder}/" for folder in folders))
    if level > len(folders) + 1:
        return ()
    return ("".join(f"{folder}/" for folder in folders[: len(folders) + 1 - level]),)


def _module(path: str, file: File) -> Module:
    return Module(
        path=path,
        file=file,
        classes={item.name: item for item in file.classes},
        functions={item.name: item for item in file.functions},
        values={item.name: item for item in file.values},
        imports={item.name: item for item in file.imports},
    )
