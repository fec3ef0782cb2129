"""A Python file as the checks read it: its classes, functions, imports and values, by name."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from twinlens.source.definitions import parse

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Imported:
    """`name` of the module `module` (None: the module itself), `level` packages up for a relative import."""

    module: str
    name: str | None
    level: int


@dataclass(frozen=True, eq=False)
class Module:
    """One file. Of two definitions with one name the last counts, as at run time."""

    path: Path
    text: str
    tree: ast.Module
    classes: dict[str, Class] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    imports: dict[str, Imported] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    imports_everything: list[Imported] = field(default_factory=list)

    def subclasses(self, base: Class) -> list[Class]:
        """The classes of this file that name `base` as a base, and theirs; `base` itself is not among them."""
        found: list[Class] = []
        names = {base.name}
        for cls in self.classes.values():
            if any(isinstance(node, ast.Name) and node.id in names for node in cls.node.bases):
                names.add(cls.name)
                found.append(cls)
        return found


@dataclass(frozen=True, eq=False)
class Class:
    """A module-level class."""

    module: Module
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    def method(self, name: str) -> FunctionNode | None:
        """Its own method `name`, the last of that name."""
        found = None
        for node in _statements(self.node.body):
            if isinstance(node, FunctionNode) and node.name == name:
                found = node
        return found

    def methods(self) -> Iterator[FunctionNode]:
        """Its own methods."""
        return (node for node in _statements(self.node.body) if isinstance(node, FunctionNode))

    def attribute(self, name: str) -> ast.expr | None:
        """The value that its own body assigns to `name`."""
        found = None
        for node in _statements(self.node.body):
            for target, value in _assigned(node):
                if target == name:
                    found = value
        return found


@dataclass(frozen=True, eq=False)
class Function:
    """A module-level function."""

    module: Module
    node: FunctionNode


@dataclass(frozen=True, eq=False)
class Value:
    """What a module-level name is assigned."""

    module: Module
    node: ast.expr


@dataclass(frozen=True, slots=True)
class External:
    """A name whose source is not read: `torch.nn.Module`."""

    dotted: str


Meaning = Class | Function | Value | External | Module


def read_module(path: Path, text: str) -> Module:
    """The module of `text`. Raises `SyntaxError` where it does not parse."""
    module = Module(path, text, parse(text))
    for node in _statements(module.tree.body):
        if isinstance(node, ast.ClassDef):
            module.classes[node.name] = Class(module, node)
        elif isinstance(node, FunctionNode):
            module.functions[node.name] = Function(module, node)
        else:
            for name, value in _assigned(node):
                module.values[name] = Value(module, value)
    for node in _every_statement(module.tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module.imports.setdefault(alias.asname or alias.name.split(".")[0], _of_import(alias))
        elif isinstance(node, ast.ImportFrom):
            _read_import(module, node)
    return module


def _read_import(module: Module, node: ast.ImportFrom) -> None:
    for alias in node.names:
        if alias.name == "*":
            module.imports_everything.append(Imported(node.module or "", None, node.level))
        else:
            imported = Imported(node.module or "", alias.name, node.level)
            module.imports.setdefault(alias.asname or alias.name, imported)


def is_builtin(name: str) -> bool:
    """Whether every module knows `name` without defining it."""
    return hasattr(builtins, name)


def _of_import(alias: ast.alias) -> Imported:
    return Imported(alias.name if alias.asname else alias.name.split(".")[0], None, 0)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those of its `if`, `try` and `with` blocks among them."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _statements(node.body)
            yield from _statements(getattr(node, "orelse", []))
            yield from _statements(getattr(node, "finalbody", []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _every_statement(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body at any depth, those of functions and classes among them."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("finalbody", "orelse", "body"):
            waiting.extend(reversed(getattr(node, name, ())))
        for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            waiting.extend(reversed(handler.body))


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
