"""What a class of a modeling file needs beside it: imports, functions, constants and other classes."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from twinlens.similarity.modular.parent import ModelingSource, Parent, Statement
from twinlens.similarity.modular.subclass import subclass


@dataclass(frozen=True, slots=True)
class Needed:
    """`imports` bind names that the code uses; `inherited` are names to import from the parent's file; `statements`
    are definitions and constants, in the order of the modeling file.
    """

    imports: tuple[cst.Import | cst.ImportFrom, ...]
    inherited: tuple[str, ...]
    statements: tuple[Statement, ...]


def needed_by(
    wanted: cst.ClassDef, child: ModelingSource, parent: ModelingSource, ancestor: Parent, present: Iterable[str]
) -> Needed:
    """Everything that `wanted` uses and that is not among the names `present`, followed through what that uses.

    A definition that the parent's file has as well, but for the model's name, is not copied: a function is imported
    from there, a class becomes an empty subclass.
    """
    bound = _imported_names(child.tree)
    local = _local_statements(child.tree)
    theirs = {parent.sanitised(node): node for node in parent.definitions().values()}
    present = set(present) | {wanted.name.value}
    imports: dict[str, cst.Import | cst.ImportFrom] = {}
    inherited = {ancestor.name}
    statements: dict[str, Statement] = {}
    waiting = _used_names(wanted)
    while waiting:
        name = waiting.pop(0)
        if name in present or hasattr(builtins, name):
            continue
        present.add(name)
        if name in bound:
            imports[name] = bound[name]
        elif name in local:
            node = local[name]
            twin = theirs.get(child.sanitised(node)) if isinstance(node, (cst.ClassDef, cst.FunctionDef)) else None
            if isinstance(node, cst.FunctionDef) and twin is not None and twin.name.value == name:
                inherited.add(name)
                continue
            if isinstance(node, cst.ClassDef) and isinstance(twin, cst.ClassDef):
                inherited.add(twin.name.value)
                node = subclass(node, child, twin, parent)
            statements[name] = node
            waiting += _used_names(node)
    order = {name: place for place, name in enumerate(local)}
    return Needed(
        tuple(imports.values()),
        tuple(sorted(inherited)),
        tuple(statements[name] for name in sorted(statements, key=order.__getitem__)),
    )


def _used_names(node: cst.CSTNode) -> list[str]:
    """The names that the code reads, in order; attributes, keywords and parameters are not names to look up."""
    found: dict[str, None] = {}
    node.visit(_Names(found))
    return list(found)


class _Names(cst.CSTVisitor):
    def __init__(self, found: dict[str, None]) -> None:
        self._found = found

    def visit_Name(self, node: cst.Name) -> None:
        self._found[node.value] = None

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        for part in (node.annotation, node.default):
            if part is not None:
                part.visit(self)
        return False

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        # A forward reference, such as "LumenConfig" in an annotation.
        if str(node.raw_value).isidentifier():
            self._found[str(node.raw_value)] = None


def _imported_names(tree: cst.Module) -> dict[str, cst.Import | cst.ImportFrom]:
    """Name to an import statement that binds it and nothing else."""
    found: dict[str, cst.Import | cst.ImportFrom] = {}
    for node in _import_statements(tree.body):
        if isinstance(node.names, cst.ImportStar):
            continue
        for alias in node.names:
            name = alias.evaluated_alias or alias.evaluated_name.split(".")[0]
            alone = node.with_changes(names=[alias.with_changes(comma=cst.MaybeSentinel.DEFAULT)])
            found[name] = alone.with_changes(lpar=None, rpar=None) if isinstance(alone, cst.ImportFrom) else alone
    return found


def _import_statements(body: Iterable[cst.CSTNode]) -> Iterable[cst.Import | cst.ImportFrom]:
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            yield from (part for part in statement.body if isinstance(part, (cst.Import, cst.ImportFrom)))
        elif isinstance(statement, (cst.If, cst.Try)):
            yield from _import_statements(statement.body.body)


def _local_statements(tree: cst.Module) -> dict[str, Statement]:
    """The module's own classes, functions and constants by name, in the file's order."""
    found: dict[str, Statement] = {}
    for statement in tree.body:
        if isinstance(statement, (cst.ClassDef, cst.FunctionDef)):
            found[statement.name.value] = statement
        elif isinstance(statement, cst.SimpleStatementLine):
            match statement.body[0]:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name)), *_]) if name != "__all__":
                    found[name] = statement
                case cst.AnnAssign(target=cst.Name(value=name)):
                    found[name] = statement
    return found
