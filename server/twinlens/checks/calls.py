"""How a class of the library is called, and whether a signature accepts that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from twinlens.checks.assembly import Assembly
from twinlens.checks.modules import Class, FunctionNode, Module
from twinlens.source.definitions import dotted_name


@dataclass(frozen=True, slots=True)
class Calling:
    """A call of a class, or of an instance of it, in `module`."""

    module: Module
    call: ast.Call

    @property
    def place(self) -> str:
        return f"{self.module.path.name}:{self.call.lineno}"


def constructions(cls: Class) -> Iterator[Calling]:
    """The calls that make a `cls`, in the file that defines it."""
    for node in ast.walk(cls.module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == cls.name:
            yield Calling(cls.module, node)


def forward_calls(assembly: Assembly, cls: Class) -> Iterator[Calling]:
    """The calls of instances of `cls`, in the file that defines it."""
    for holder in cls.module.classes.values():
        if cls.name not in _source_names(holder):
            continue
        for part in assembly.parts(holder):
            if cls in part.classes:
                attribute, _, inside = part.path.partition(".")
                for method in holder.methods():
                    for call in _calls_of(method, attribute, is_list=bool(inside)):
                        yield Calling(holder.module, call)


def _source_names(cls: Class) -> set[str]:
    return {node.id for node in ast.walk(cls.node) if isinstance(node, ast.Name)}


def _calls_of(method: FunctionNode, attribute: str, is_list: bool) -> Iterator[ast.Call]:
    callees = {f"self.{attribute}"} if not is_list else set(_loop_names(method, f"self.{attribute}"))
    for node in ast.walk(method):
        is_named = isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
        if is_named and dotted_name(node.func) in callees:
            yield node


def _loop_names(method: FunctionNode, iterated: str) -> Iterator[str]:
    for node in ast.walk(method):
        if not isinstance(node, ast.For):
            continue
        source, target = node.iter, node.target
        if isinstance(source, ast.Call) and dotted_name(source.func) == "enumerate" and source.args:
            source = source.args[0]
            target = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
        if dotted_name(source) == iterated and isinstance(target, ast.Name):
            yield target.id


def refusal(function: FunctionNode, call: ast.Call) -> str | None:
    """Why a method does not accept the arguments of `call`, or None where it does or nothing can be told."""
    arguments = function.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][1:]
    named = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    spread = any(keyword.arg is None for keyword in call.keywords)
    if not starred and len(call.args) > len(positional) and arguments.vararg is None:
        return f"takes {len(positional)} positional arguments, not {len(call.args)}"
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg not in named and arguments.kwarg is None:
            return f"takes no argument {keyword.arg!r}"
    if starred or spread:
        return None
    given = set(positional[: len(call.args)]) | {keyword.arg for keyword in call.keywords}
    required = positional[: max(0, len(positional) - len(arguments.defaults))]
    required += [
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    missing = [name for name in required if name not in given]
    return f"needs an argument {missing[0]!r}" if missing else None
