"""A function's statements as the steps that decide whether it tests anything.

Only what can skip, stop, loop or fail is kept; everything else of a body is irrelevant to the question. Code after
a step that always leaves the function is dropped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from twinlens.skips.facts import Branch, Call, Loop, Skip, Step, Stop, Work

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_SEEDS_AND_LOGS = frozenset({"set_seed", "manual_seed", "seed", "print", "debug", "info", "warning"})
_FREES_MEMORY = frozenset({"collect", "empty_cache", "backend_empty_cache", "cleanup"})
_ONLY_PREPARES = _SEEDS_AND_LOGS | _FREES_MEMORY


def is_hollow(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing is left of a body without docstrings, `pass`, `...` and a bare `return`."""
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        or (isinstance(statement, ast.Return) and _is_constant(statement.value))
        for statement in body
    )


def steps_of(body: Sequence[ast.stmt], receiver: str) -> tuple[Step, ...]:
    """The steps of a body, in order; `receiver` is what the function calls its `self`."""
    steps: list[Step] = []
    for statement in body:
        for step in _steps_of_statement(statement, receiver):
            if isinstance(step, Work) and steps and isinstance(steps[-1], Work) and not _adds(step, steps[-1]):
                continue
            steps.append(step)
        if steps and isinstance(steps[-1], Skip | Stop):
            break
    return tuple(steps)


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of names, nothing for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _adds(step: Work, before: Work) -> bool:
    return before.prepares and not step.prepares


def _steps_of_statement(statement: ast.stmt, receiver: str) -> Iterable[Step]:
    match statement:
        case (
            ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.With() | ast.AsyncWith() | ast.Try() | ast.Match()
        ):
            yield from _steps_of_block(statement, receiver)
        case ast.Expr(value=value):
            yield from _steps_of_expression(value, statement.lineno, receiver, prepares=False)
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield from _steps_of_expression(value, statement.lineno, receiver, prepares=True)
        case ast.Return(value=value):
            if value is not None:
                yield from _steps_of_expression(value, statement.lineno, receiver, prepares=False)
            yield Stop("return", statement.lineno)
        case ast.Raise():
            yield from _steps_of_raise(statement)
        case ast.Assert():
            yield Work(statement.lineno, prepares=False)
        case ast.Continue() | ast.Break():
            yield Stop("continue", statement.lineno)


def _steps_of_block(statement: ast.stmt, receiver: str) -> Iterable[Step]:
    match statement:
        case ast.If():
            yield from _steps_of_branch(statement, receiver)
        case ast.For() | ast.AsyncFor():
            yield from _steps_of_loop(ast.unparse(statement.iter), statement, receiver)
        case ast.While():
            yield from _steps_of_loop("", statement, receiver)
        case ast.With() | ast.AsyncWith():
            yield from _steps_of_with(statement, receiver)
        case ast.Try():
            yield from _steps_of_try(statement, receiver)
        case ast.Match():
            for case in statement.cases:
                pattern = f"{ast.unparse(statement.subject)} matches {ast.unparse(case.pattern)}"
                yield from _branch(pattern, case.pattern.lineno, steps_of(case.body, receiver), (), receiver)


def _steps_of_expression(value: ast.expr, line: int, receiver: str, *, prepares: bool) -> Iterable[Step]:
    if isinstance(value, ast.Await):
        value = value.value
    if not isinstance(value, ast.Call):
        if not _is_constant(value):
            yield Work(line, prepares=True)
        return
    name = dotted(value.func)
    if name.endswith(".skipTest") or name == "pytest.skip":
        yield Skip(_reason(value), line)
    elif (overridden := _super_method(value)) or _explicit_base_call(value, name, receiver):
        yield Call("super" if overridden else "function", overridden or name, line, prepares)
    elif name.startswith(f"{receiver}.") and name.count(".") == 1:
        method = name.removeprefix(f"{receiver}.")
        if method.startswith(("assert", "fail")):
            yield Work(line, prepares=False)
        else:
            yield Call("self", method, line, prepares)
    elif name and "." not in name and value.args and dotted(value.args[0]) == receiver:
        yield Call("function", name, line, prepares)
    else:
        yield Work(line, prepares or name.rpartition(".")[2] in _ONLY_PREPARES)


def _steps_of_raise(statement: ast.Raise) -> Iterable[Step]:
    raised = statement.exc
    name = dotted(raised.func) if isinstance(raised, ast.Call) else dotted(raised) if raised is not None else ""
    if name.rpartition(".")[2] == "SkipTest":
        yield Skip(_reason(raised) if isinstance(raised, ast.Call) else "", statement.lineno)
    else:
        yield Work(statement.lineno, prepares=False)
        yield Stop("raise", statement.lineno)


def _steps_of_branch(statement: ast.If, receiver: str) -> Iterable[Step]:
    body = steps_of(statement.body, receiver)
    orelse = steps_of(statement.orelse, receiver)
    if body or orelse:
        yield from _branch(statement.test, statement.lineno, body, orelse, receiver)


def _branch(
    condition: ast.expr | str, line: int, body: tuple[Step, ...], orelse: tuple[Step, ...], receiver: str
) -> Iterable[Step]:
    text = condition if isinstance(condition, str) else ast.unparse(condition)
    if not _only_works(body + orelse) or f"{receiver}." in text or f"({receiver}," in text:
        yield Branch(text, line, body, orelse)
    else:
        yield from body + orelse


def _steps_of_loop(iterable: str, statement: ast.For | ast.AsyncFor | ast.While, receiver: str) -> Iterable[Step]:
    body = steps_of(statement.body, receiver)
    if not _only_works(body) or f"{receiver}." in iterable:
        yield Loop(iterable, statement.lineno, body)
    else:
        yield from body
    yield from steps_of(statement.orelse, receiver)


def _steps_of_try(statement: ast.Try, receiver: str) -> Iterable[Step]:
    yield from steps_of([*statement.body, *statement.orelse], receiver)
    for handler in statement.handlers:
        caught = ast.unparse(handler.type) if handler.type is not None else "an exception"
        body = steps_of(handler.body, receiver)
        if any(isinstance(step, Skip) for step in body):
            yield Branch(f"{caught} is raised", handler.lineno, body, ())
    yield from steps_of(statement.finalbody, receiver)


def _steps_of_with(statement: ast.With | ast.AsyncWith, receiver: str) -> Iterable[Step]:
    entered = [item.context_expr.func for item in statement.items if isinstance(item.context_expr, ast.Call)]
    if any("assert" in dotted(function) for function in entered):
        yield Work(statement.lineno, prepares=False)
    yield from steps_of(statement.body, receiver)


def _only_works(steps: Iterable[Step]) -> bool:
    return all(isinstance(step, Work) for step in steps)


def _reason(call: ast.Call) -> str:
    for keyword in call.keywords:
        if keyword.arg in ("reason", "msg"):
            return ast.unparse(keyword.value)
    return ast.unparse(call.args[0]) if call.args else ""


def _super_method(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=method):
            return method
    return ""


def _explicit_base_call(call: ast.Call, name: str, receiver: str) -> bool:
    return (
        name.count(".") == 1
        and not name.startswith(f"{receiver}.")
        and name.rpartition(".")[2].startswith("test")
        and bool(call.args)
        and dotted(call.args[0]) == receiver
    )


def _is_constant(node: ast.expr | None) -> bool:
    match node:
        case None | ast.Constant() | ast.Name() | ast.Attribute():
            return True
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return all(_is_constant(element) for element in elements)
    return False
