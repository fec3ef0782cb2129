"""What a class declares in `_can_record_outputs`, as written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from twinlens.checks.classes import DECLARATION
from twinlens.checks.modules import Class
from twinlens.source.definitions import dotted_name

T = TypeVar("T", str, int)

RECORDER = "OutputRecorder"


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorder of a declaration, whose modules are of one of the classes `targets` (dotted names, as written).

    `class_name` is a name given as a string. `index` is None where the source does not tell it, `layer_name` where none
    is given.
    """

    key: str
    key_node: ast.expr
    node: ast.expr
    targets: tuple[ast.expr, ...]
    class_name: str | None
    index: int | None
    index_node: ast.expr | None
    layer_name: str | None
    layer_name_node: ast.expr | None
    tells_layer_name: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The dotted names of the targets."""
        return tuple(dotted_name(target) for target in self.targets)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A literal `_can_record_outputs`."""

    owner: Class
    node: ast.Dict
    entries: tuple[Entry, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.key for entry in self.entries))


def declaration_of(cls: Class) -> Declaration | None:
    """What the body of `cls` itself declares, where that is a dictionary with something in it."""
    node = cls.attribute(DECLARATION)
    if not isinstance(node, ast.Dict) or not node.keys:
        return None
    return Declaration(cls, node, tuple(_entries(node)))


def default_index(key: str) -> int:
    """The element that a bare class records."""
    return 0 if "hidden_states" in key else 1


def _entries(node: ast.Dict) -> Iterator[Entry]:
    for key_node, value in zip(node.keys, node.values, strict=True):
        if isinstance(key_node, ast.Constant) and isinstance(key_node.value, str):
            for element in value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]:
                entry = _entry(key_node, key_node.value, element)
                if entry is not None:
                    yield entry


def _entry(key_node: ast.expr, key: str, node: ast.expr) -> Entry | None:
    index = default_index(key)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Entry(key, key_node, node, (), node.value, index, None, None, None)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return Entry(key, key_node, node, (node,), None, index, None, None, None)
    if isinstance(node, ast.Call) and dotted_name(node.func).split(".")[-1] == RECORDER:
        return _recorder(key_node, key, node)
    return None


def _recorder(key_node: ast.expr, key: str, node: ast.Call) -> Entry:
    given = dict(zip(("target_class", "index", "layer_name", "class_name"), node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    target = given.get("target_class")
    index, layer_name, class_name = (given.get(name) for name in ("index", "layer_name", "class_name"))
    candidates = target.elts if isinstance(target, ast.Tuple) else [target] if target is not None else []
    return Entry(
        key,
        key_node,
        node,
        tuple(element for element in candidates if isinstance(element, (ast.Name, ast.Attribute))),
        _constant(class_name, str),
        0 if index is None else _constant(index, int),
        index,
        _constant(layer_name, str),
        layer_name,
        layer_name is None or _constant(layer_name, str) is not None or _is_none(layer_name),
    )


def _constant(node: ast.expr | None, kind: type[T]) -> T | None:
    try:
        value = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
