"""What of a file can be traced, read from its source: its modules and its recipes. Standard library only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traceable:
    """A class with a forward, or a recipe. Lines count from 1; `forward_line` is None where the forward is
    inherited.
    """

    name: str
    line: int
    column: int
    """Of the name, in UTF-8 bytes, as `ast` counts."""
    is_recipe: bool = False
    forward_line: int | None = None
    target: str = ""
    """The class that a recipe says it is for."""


def traceables(text: str) -> list[Traceable]:
    """The top-level classes that are modules with a forward, and the recipes, in the order of the file.

    Raises:
        SyntaxError: the text does not parse.
    """
    tree = ast.parse(text)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return [found for node in tree.body for found in _of(node, classes)]


def _of(node: ast.stmt, classes: dict[str, ast.ClassDef]) -> Iterator[Traceable]:
    if isinstance(node, ast.ClassDef) and _is_module(node, classes, set()):
        forward = _own_forward(node)
        if forward is not None or _inherits_forward(node, classes, set()):
            column = node.col_offset + len("class ")
            yield Traceable(node.name, node.lineno, column, forward_line=forward.lineno if forward else None)
    elif isinstance(node, ast.FunctionDef):
        for decorator in node.decorator_list:
            if _called_name(decorator) == "recipe":
                yield Traceable(node.name, node.lineno, node.col_offset + len("def "), True, target=_target(decorator))


def _is_module(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: set[str]) -> bool:
    """Whether a base that is not of this file makes it a module: by the base's name, or by the class's own forward."""
    seen.add(node.name)
    for base in node.bases:
        name = _called_name(base)
        if name in classes:
            if name not in seen and _is_module(classes[name], classes, seen):
                return True
        elif name == "Module" or name.endswith(("PreTrainedModel", "Layer")):
            return True
        elif name and not name.endswith(("Function", "TestCase", "Config", "Output", "Enum")) and name != "object":
            return _own_forward(node) is not None
    return False


def _inherits_forward(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: set[str]) -> bool:
    seen.add(node.name)
    parents = [classes[name] for base in node.bases if (name := _called_name(base)) in classes and name not in seen]
    return any(_own_forward(parent) is not None or _inherits_forward(parent, classes, seen) for parent in parents)


def _own_forward(node: ast.ClassDef) -> ast.FunctionDef | None:
    """The class's method `forward`; a static one is that of an autograd function."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "forward":
            is_static = any(_called_name(decorator) == "staticmethod" for decorator in item.decorator_list)
            return None if is_static else item
    return None


def _called_name(node: ast.expr) -> str:
    """The last part of a name, an attribute, a call or a subscription: `nn.Module` → `Module`."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _target(decorator: ast.expr) -> str:
    if not isinstance(decorator, ast.Call):
        return ""
    given = [keyword.value for keyword in decorator.keywords if keyword.arg == "target"] or decorator.args[:1]
    value = given[0] if given else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return _called_name(value) if value is not None else ""
