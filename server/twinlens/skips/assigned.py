"""Tests and marks that are assigned, not defined: `test_x = skip("…")(Base.test_x)`, `pytestmark = […]`."""

from __future__ import annotations

import ast

from twinlens.skips.body import dotted
from twinlens.skips.facts import Decorator, Value
from twinlens.skips.values import parse_expression


def assigned_test(value: Value) -> tuple[list[Decorator], str]:
    """The decorators that an assignment applies, outermost first, and the dotted name of what it assigns, if any."""
    node = parse_expression(value.expression)
    decorators: list[Decorator] = []
    while isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        inner = _as_decorator(node.func, value)
        if inner is None:
            break
        decorators.append(inner)
        node = node.args[0]
    return decorators, dotted(node) if node is not None else ""


def marks_in(value: Value) -> list[Decorator]:
    """The marks of a `pytestmark`, one or a list."""
    node = parse_expression(value.expression)
    nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else [node] if node is not None else []
    return [mark for item in nodes if (mark := _as_decorator(item, value)) is not None]


def _as_decorator(node: ast.expr, value: Value) -> Decorator | None:
    if isinstance(node, ast.Call):
        if not dotted(node.func):
            return None
        keywords = tuple((keyword.arg or "**", ast.unparse(keyword.value)) for keyword in node.keywords)
        return Decorator(dotted(node.func), value.line, tuple(map(ast.unparse, node.args)), keywords, value.end_line)
    return Decorator(dotted(node), value.line, None, (), value.end_line) if dotted(node) else None
