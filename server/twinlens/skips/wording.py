"""Puts expressions into words: a skip's reason, and the attribute that settles a condition."""

from __future__ import annotations

import ast

from twinlens.skips.values import Evaluation, Scope, as_bool, parse_expression


def render(text: str, scope: Scope) -> str:
    """A reason as a person reads it: strings joined, constants looked up, what only a run fills in left in braces."""
    node = parse_expression(text)
    return text if node is None else _rendered(node, Evaluation(scope))


def _rendered(node: ast.expr, evaluation: Evaluation) -> str:
    value = evaluation.of(node)
    if isinstance(value, str):
        return " ".join(value.split())
    match node:
        case ast.JoinedStr(values=parts):
            return " ".join("".join(_rendered_part(part, evaluation) for part in parts).split())
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{_rendered(left, evaluation)}{_rendered(right, evaluation)}"
        case ast.Call(func=ast.Attribute(value=inner, attr="format" | "strip")) if isinstance(inner, ast.Constant):
            return _rendered(inner, evaluation)
        case ast.Call(args=[first]) if not node.keywords:
            return _rendered(first, evaluation)
    return f"{{{ast.unparse(node)}}}"


def _rendered_part(part: ast.expr, evaluation: Evaluation) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    value = evaluation.of(part.value)
    return str(value) if isinstance(value, str | int | float) else f"{{{ast.unparse(part.value)}}}"


def deciding_attribute(text: str, scope: Scope) -> str:
    """The attribute of the test case that makes a condition true or false; nothing where none is read."""
    node = parse_expression(text)
    return "" if node is None else _deciding(node, Evaluation(scope))


def _deciding(node: ast.expr, evaluation: Evaluation) -> str:
    if isinstance(node, ast.UnaryOp):
        return _deciding(node.operand, evaluation)
    if isinstance(node, ast.BoolOp):
        outcome = as_bool(evaluation.of(node))
        decisive = [value for value in node.values if as_bool(evaluation.of(value)) is outcome]
        return next(filter(None, (_deciding(value, evaluation) for value in decisive)), "")
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == evaluation.scope.receiver:
                return attribute
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(attribute)), *_]):
                return attribute
    return ""
