"""One file's source to the facts of `facts.File`: a single parse, nothing imported, nothing run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from twinlens.skips.body import Definition, dotted, is_hollow, steps_of
from twinlens.skips.facts import Class, Decorator, Deleted, File, Function, FunctionRole, Import, Member, Value

_READ_FROM_A_TEST_CASE = re.compile(
    r"""\b(?:self|cls|parent|testcase|test_case|tester|model_tester|__class__)(?=\.([A-Za-z_]\w*))|attr\(\s*[\w.]+\s*,\s*["']([A-Za-z_]\w*)["']"""
)
_IGNORED = re.compile(r"#\s*twinlens:\s*ignore\[([\w\s,-]+)\]")
_SKIPPING = re.compile(r"(?:^|\.)(?:skip|skipIf|skipUnless|skipif)$")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Statement = TypeVar("_Statement", bound=ast.stmt)
_SETS_UP = frozenset({"setUp", "setUpClass", "asyncSetUp"})
SPECIAL_METHODS = _SETS_UP | {"__init_subclass__"}
"""Methods that say something about their whole class."""


def parse(content: bytes) -> File:
    """The facts of one file's content; one that does not parse gives a `File` with its `error`, nothing is raised."""
    try:
        module = ast.parse(content)
    except SyntaxError as error:
        return File(error=error.msg, error_line=error.lineno or 1)
    except (ValueError, RecursionError) as error:
        return File(error=str(error), error_line=1)
    source = content.decode("utf-8", errors="replace")
    found = _Namespace()
    found.add_all(module.body)
    reads, ignored = read_from_text(source)
    return File(
        classes=tuple(_class(node) for _, node in found.of_kind(ast.ClassDef)),
        functions=tuple(_function(node, in_class=False) for _, node in found.of_kind(*_DEFINITIONS)),
        values=tuple(_value(name, node) for name, node in found.of_kind(ast.Assign, ast.AnnAssign)),
        imports=tuple(_imports(found.imports)),
        deleted=tuple(name for name, _ in found.of_kind(ast.Delete)),
        reads=reads,
        ignored=ignored,
    )


def read_from_text(source: str) -> tuple[frozenset[str], tuple[tuple[int, str], ...]]:
    """What is read off the text itself: the names read from a test case, and the lines that silence a lint."""
    reads = frozenset(first or second for first, second in _READ_FROM_A_TEST_CASE.findall(source))
    return reads, tuple(_ignored(source))


def method_facts(node: Definition) -> Function:
    """The facts of one method, at the lines of its syntax tree."""
    return _function(node, in_class=True)


def _ignored(source: str) -> Iterator[tuple[int, str]]:
    for found in _IGNORED.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        yield from ((line, code.strip()) for code in found.group(1).split(","))


@dataclass(slots=True)
class _Namespace:
    """What a class or module body binds, the last binding of each name last seen.

    Of `if … else` and `try … except` the first alternative that binds a name counts: the others stand in for it.
    """

    bindings: dict[str, ast.stmt] = field(default_factory=dict)
    hidden: list[ast.stmt] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)

    def add_all(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._add(statement)

    def of_kind(self, *kinds: type[_Statement]) -> Iterator[tuple[str, _Statement]]:
        return ((name, node) for name, node in self.bindings.items() if isinstance(node, kinds))

    def _add(self, statement: ast.stmt) -> None:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._bind(name, statement)
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._bind(target.id, statement)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                self._bind(name, statement)
            case ast.Import() | ast.ImportFrom():
                self.imports.append(statement)
            case ast.If(body=body, orelse=orelse):
                self._add_alternatives(body, orelse)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                self._add_alternatives([*body, *orelse, *finalbody], [s for handler in handlers for s in handler.body])
            case ast.With(body=body):
                self.add_all(body)

    def _bind(self, name: str, statement: ast.stmt) -> None:
        before = self.bindings.pop(name, None)
        if before is not None and not _builds_on(statement, before):
            self.hidden.append(before)
        self.bindings[name] = statement

    def _add_alternatives(self, first: Sequence[ast.stmt], second: Sequence[ast.stmt]) -> None:
        self.add_all(first)
        stand_ins = _Namespace()
        stand_ins.add_all(second)
        for name, statement in stand_ins.bindings.items():
            self.bindings.setdefault(name, statement)
        self.imports.extend(stand_ins.imports)


def _builds_on(statement: ast.stmt, before: ast.stmt) -> bool:
    """A property's setter, or a name that is wrapped anew: the earlier binding is not lost."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(
            "." in dotted(decorator) for decorator in statement.decorator_list if isinstance(decorator, ast.Attribute)
        )
    return not isinstance(before, ast.FunctionDef | ast.AsyncFunctionDef)


def _class(node: ast.ClassDef) -> Class:
    body = _Namespace()
    body.add_all(node.body)
    members = tuple(_members(body))
    return Class(
        name=node.name,
        line=node.lineno,
        column=node.col_offset + len("class "),
        end_line=node.end_lineno or node.lineno,
        bases=tuple(dotted(base) or ast.unparse(base) for base in node.bases),
        decorators=tuple(_decorator(decorator) for decorator in node.decorator_list),
        members=members,
        lost=tuple(_function(statement, in_class=True) for statement in body.hidden if _is_test(statement)),
        nested=tuple(_function(statement, in_class=True) for statement in _nested_tests(body)),
        set_on_instance=tuple(dict.fromkeys(_set_on_instance(body))),
        copies_tests=any(
            isinstance(statement, ast.FunctionDef) and _copies_tests(statement)
            for name, statement in body.bindings.items()
            if name == "__init_subclass__"
        ),
    )


def _members(body: _Namespace) -> Iterator[Member]:
    for name, statement in body.bindings.items():
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield _function(statement, in_class=True)
            case ast.Assign() | ast.AnnAssign():
                yield _value(name, statement)
            case ast.Delete():
                yield Deleted(name, statement.lineno)


def _function(node: ast.stmt, *, in_class: bool) -> Function:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments = [*node.args.posonlyargs, *node.args.args]
    receiver = arguments[0].arg if arguments else ""
    steps = steps_of(node.body, receiver)
    decorators = tuple(_decorator(decorator) for decorator in node.decorator_list)
    return Function(
        name=node.name,
        line=node.lineno,
        column=node.col_offset + (len("async def ") if isinstance(node, ast.AsyncFunctionDef) else len("def ")),
        first_line=min([node.lineno, *(decorator.line for decorator in decorators)]),
        end_line=node.end_lineno or node.lineno,
        role=_role(decorators),
        is_async=isinstance(node, ast.AsyncFunctionDef),
        receiver=receiver,
        decorators=decorators,
        steps=steps,
        returns=_only_return(node.body),
        gates=() if in_class else tuple(_gates(node)),
        hollow=is_hollow(node.body),
        defaults=() if in_class else tuple(_defaults(node.args)),
        makes_decorator=not in_class and _makes_decorator(node, receiver),
    )


def _role(decorators: Iterable[Decorator]) -> FunctionRole:
    names = {decorator.name.rpartition(".")[2] for decorator in decorators}
    if names & {"property", "cached_property"}:
        return "property"
    if "classmethod" in names:
        return "classmethod"
    return "staticmethod" if "staticmethod" in names else "method"


def _decorator(node: ast.expr) -> Decorator:
    if not isinstance(node, ast.Call):
        return Decorator(dotted(node) or ast.unparse(node), node.lineno, None, (), node.end_lineno or node.lineno)
    return Decorator(
        name=dotted(node.func) or ast.unparse(node.func),
        line=node.lineno,
        arguments=tuple(ast.unparse(argument) for argument in node.args),
        keywords=tuple((keyword.arg or "**", ast.unparse(keyword.value)) for keyword in node.keywords),
        end_line=node.end_lineno or node.lineno,
    )


def _only_return(body: Sequence[ast.stmt]) -> str:
    told = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(told) == 1 and isinstance(told[0], ast.Return) and told[0].value is not None:
        return ast.unparse(told[0].value)
    return ""


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return ((argument.arg, ast.unparse(default)) for argument, default in pairs)


def _makes_decorator(node: Definition, first: str) -> bool:
    """It ends by returning an inner function of one parameter, and never treats its own first argument as the test."""
    last = node.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return False
    returned = last.value.id
    inner = next((s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == returned), None)
    if inner is None or len(inner.args.args) != 1 or inner.args.vararg or inner.args.kwarg:
        return False
    calls = [call for call in ast.walk(inner) if isinstance(call, ast.Call)]
    return first != "" and all(dotted(used) != first for call in calls for used in (call.func, *call.args))


def _gates(node: Definition) -> Iterator[Decorator]:
    """Only a function of one leading parameter can decorate, and only one that names a skip can skip."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and _SKIPPING.search(dotted(inner.func)):
            yield _decorator(inner)


def _value(name: str, node: ast.stmt) -> Value:
    assert isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
    return Value(name, node.lineno, node.col_offset, node.end_lineno or node.lineno, ast.unparse(node.value))


def _imports(nodes: Iterable[ast.Import | ast.ImportFrom]) -> Iterator[Import]:
    for node in nodes:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                yield Import(alias.asname or alias.name, node.module or "", node.level, alias.name)
            elif alias.asname:
                yield Import(alias.asname, alias.name, 0, "")
            else:
                top = alias.name.partition(".")[0]
                yield Import(top, top, 0, "")


def _is_test(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test")


def _nested_tests(body: _Namespace) -> Iterator[ast.stmt]:
    for statement in body.bindings.values():
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from filter(_is_test, statement.body)


def _set_on_instance(body: _Namespace) -> Iterator[str]:
    for name in _SETS_UP & body.bindings.keys():
        for node in ast.walk(body.bindings[name]):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                yield node.attr


def _copies_tests(node: ast.FunctionDef) -> bool:
    called = {dotted(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)}
    return {"setattr", "dir"} <= called
