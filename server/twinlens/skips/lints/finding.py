"""One fault at one place, and the edit that mends it where that is safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twinlens.skips.facts import Class, Decorator, Function, Value


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit of whole lines, counted from 1: take them out, move them below another line, or add text to the last.

    `text` is what is appended, or what stays, indented as before, where the lines are taken out.
    """

    title: str
    kind: Literal["remove", "move below", "append"]
    first_line: int
    last_line: int
    below: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`column` counts UTF-8 bytes from 0; `length` of the underlined name likewise."""

    path: str
    line: int
    column: int
    length: int
    code: str
    message: str
    fix: Fix | None = None


def at_member(code: str, path: str, member: Function | Value, message: str, fix: Fix | None = None) -> Finding:
    """A finding at the name of a function or of an assigned attribute."""
    return Finding(path, member.line, member.column, len(member.name.encode()), code, message, fix)


def at_decorator(code: str, path: str, function: Function, decorator: Decorator, message: str, fix: Fix) -> Finding:
    """A finding at a decorator, which stands in the column of its function's `def`, behind an `@`."""
    column = function.column - len("async def " if function.is_async else "def ") + 1
    return Finding(path, decorator.line, column, len(decorator.name.encode()), code, message, fix)


def removal(title: str, cls: Class, member: Function | Value) -> Fix:
    """The edit that takes a function, with its decorators, or an assignment out of a class."""
    first = member.first_line if isinstance(member, Function) else member.line
    alone = len(cls.members) == 1 and not cls.lost
    return Fix(title, "remove", first, member.end_line, text="pass" if alone else "")
