"""Add imports to a modular file, where and as a maintainer would write them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

from twinlens.similarity.modular.parent import Statement

_LINE = 119
"""The line length of transformers' own style."""


def with_imports(tree: cst.Module, wanted: Sequence[cst.Import | cst.ImportFrom]) -> cst.Module:
    """`tree` with each of `wanted` bound: merged into an import of the same module, else put in its sorted place."""
    body = list(tree.body)
    for node in wanted:
        node = _relative_inside_transformers(node)
        if not _merged(body, node):
            _insert(body, cst.SimpleStatementLine([node]))
    return tree.with_changes(body=_grouped(body))


def import_from(module: str, names: Sequence[str]) -> cst.ImportFrom:
    """`from ..llama.modeling_llama import LlamaMLP, rotate_half`."""
    statement = cst.parse_statement(f"from {module} import {', '.join(sorted(names))}")
    assert isinstance(statement, cst.SimpleStatementLine)
    return cst.ensure_type(statement.body[0], cst.ImportFrom)


def module_of(node: cst.ImportFrom) -> str:
    return "." * len(node.relative) + (get_full_name_for_node(node.module) or "" if node.module else "")


def _relative_inside_transformers(node: cst.Import | cst.ImportFrom) -> cst.Import | cst.ImportFrom:
    """`from transformers.activations import X` as a file in `models/<model>/` writes it: `from ...activations`."""
    if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
        return node
    module = module_of(node)
    if module.startswith("transformers.models."):
        relative = ".." + module.removeprefix("transformers.models.")
    elif module.startswith("transformers."):
        relative = "..." + module.removeprefix("transformers.")
    else:
        return node
    source = cst.parse_statement(f"from {relative} import {', '.join(map(_written, node.names))}")
    assert isinstance(source, cst.SimpleStatementLine)
    return cst.ensure_type(source.body[0], cst.ImportFrom)


def _merged(body: list[Statement], wanted: cst.Import | cst.ImportFrom) -> bool:
    for place, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            continue
        present = statement.body[0]
        if isinstance(wanted, cst.Import) and isinstance(present, cst.Import):
            if {_written(alias) for alias in wanted.names} <= {_written(alias) for alias in present.names}:
                return True
        elif (
            isinstance(wanted, cst.ImportFrom)
            and isinstance(present, cst.ImportFrom)
            and module_of(wanted) == module_of(present)
            and not isinstance(present.names, cst.ImportStar)
            and not isinstance(wanted.names, cst.ImportStar)
        ):
            names = {_written(alias) for alias in (*present.names, *wanted.names)}
            body[place] = statement.with_changes(body=[_from_names(module_of(present), names)])
            return True
    return False


def _from_names(module: str, names: set[str]) -> cst.ImportFrom:
    # As ruff's isort sorts them: constants, classes, then functions.
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) > _LINE:
        line = f"from {module} import (\n" + "".join(f"    {name},\n" for name in ordered) + ")"
    statement = cst.parse_statement(line)
    assert isinstance(statement, cst.SimpleStatementLine)
    return cst.ensure_type(statement.body[0], cst.ImportFrom)


def _written(alias: cst.ImportAlias) -> str:
    return f"{alias.evaluated_name} as {alias.evaluated_alias}" if alias.evaluated_alias else alias.evaluated_name


def _insert(body: list[Statement], statement: cst.SimpleStatementLine) -> None:
    key = _sort_key(statement)
    places = [place for place, node in enumerate(body) if _is_import(node)]
    after = [place for place in places if _sort_key(body[place]) <= key]
    body.insert(after[-1] + 1 if after else (places[0] if places else _after_docstring(body)), statement)


def _is_import(node: Statement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], (cst.Import, cst.ImportFrom))


def _after_docstring(body: Sequence[Statement]) -> int:
    first = next(iter(body), None)
    has_docstring = (
        isinstance(first, cst.SimpleStatementLine)
        and isinstance(first.body[0], cst.Expr)
        and isinstance(first.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )
    return int(has_docstring)


def _sort_key(statement: Statement) -> tuple[int, int, int, str]:
    """The standard library, other packages, then relative imports from the farthest: isort's order."""
    node = cst.ensure_type(statement, cst.SimpleStatementLine).body[0]
    if isinstance(node, cst.ImportFrom):
        module, kind = module_of(node), 1
    else:
        module, kind = cst.ensure_type(node, cst.Import).names[0].evaluated_name, 0
    dots = len(module) - len(module.lstrip("."))
    return (_group(module), -dots, kind, module)


def _group(module: str) -> int:
    if module.startswith("."):
        return 3
    if module == "__future__":
        return 0
    return 1 if module.split(".")[0] in sys.stdlib_module_names else 2


def _grouped(body: Sequence[Statement]) -> list[Statement]:
    """A blank line between the groups of imports; comments above a statement stay."""
    spaced: list[Statement] = []
    for place, node in enumerate(body):
        before = body[place - 1] if place else None
        if _is_import(node) and before is not None and _is_import(before):
            node = cst.ensure_type(node, cst.SimpleStatementLine)
            comments = [line for line in node.leading_lines if line.comment is not None]
            apart = _sort_key(node)[0] != _sort_key(before)[0]
            node = node.with_changes(leading_lines=[*([cst.EmptyLine(indent=False)] if apart else []), *comments])
        spaced.append(node)
    return spaced
