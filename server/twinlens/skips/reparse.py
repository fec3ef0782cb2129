"""The facts of an edited text without parsing all of it, where the edit stays inside one method.

A test file has thousands of lines, and a person types in one method at a time. A method whose new lines parse by
themselves, as one method of the same name, leaves everything around it as it was, some lines further up or down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from twinlens.skips.facts import Class, File, Function, Member, Value
from twinlens.skips.parse import SPECIAL_METHODS, method_facts, read_from_text
from twinlens.skips.positions import moved

_Fact = TypeVar("_Fact", Class, Function, Value, Member)


@dataclass(frozen=True, slots=True)
class _Edit:
    """Lines `first` to `last` of the old text, counted from 1, were replaced; whatever follows moved `by` lines."""

    first: int
    last: int
    by: int


def reparse(before: str, facts: File, after: str) -> File | None:
    """The facts of `after`, given those of `before`; `None` where the edit needs a parse of the whole text."""
    if "\r" in before or "\r" in after:
        return None
    old, new = before.split("\n"), after.split("\n")
    edit = _edit(old, new)
    found = next(_methods_around(facts, edit), None)
    if found is None:
        return None
    cls, method = found
    edited = _parsed_alone(new[method.first_line - 1 : method.end_line + edit.by], method)
    if edited is None:
        return None
    reads, ignored = read_from_text(after)
    return replace(
        facts,
        classes=tuple(
            _with_method(item, method, edited, edit.by) if item is cls else _placed(item, method, edit.by)
            for item in facts.classes
        ),
        functions=tuple(_placed(item, method, edit.by) for item in facts.functions),
        values=tuple(_placed(item, method, edit.by) for item in facts.values),
        reads=reads,
        ignored=ignored,
    )


def _edit(old: Sequence[str], new: Sequence[str]) -> _Edit:
    most = min(len(old), len(new))
    start = next((index for index in range(most) if old[index] != new[index]), most)
    end = next((index for index in range(most - start) if old[-1 - index] != new[-1 - index]), most - start)
    return _Edit(start + 1, len(old) - end, len(new) - len(old))


def _methods_around(facts: File, edit: _Edit) -> Iterator[tuple[Class, Function]]:
    for cls in facts.classes:
        if not cls.line < edit.first <= cls.end_line + 1 or cls.lost or cls.nested:
            continue
        for member in cls.members:
            if (
                isinstance(member, Function)
                and member.first_line <= min(edit.first, edit.last)
                and edit.last <= member.end_line
                and member.name not in SPECIAL_METHODS
            ):
                yield cls, member


def _parsed_alone(lines: Sequence[str], method: Function) -> Function | None:
    try:
        tree = ast.parse("class _:\n" + "\n".join(lines) + "\n")
    except (SyntaxError, ValueError, RecursionError):
        return None
    alone = tree.body[0]
    node = alone.body[0] if len(tree.body) == 1 and isinstance(alone, ast.ClassDef) and len(alone.body) == 1 else None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != method.name:
        return None
    if any(isinstance(inner, ast.FunctionDef) and inner.name.startswith("test") for inner in node.body):
        return None
    return moved(method_facts(node), method.first_line - 2)


def _with_method(cls: Class, method: Function, edited: Function, by: int) -> Class:
    members = tuple(edited if member is method else _placed(member, method, by) for member in cls.members)
    ends_with_it = cls.end_line == method.end_line
    return replace(cls, members=members, end_line=edited.end_line if ends_with_it else cls.end_line + by)


def _placed(fact: _Fact, method: Function, by: int) -> _Fact:
    """A fact that stands above the edited method as it is, one below it moved."""
    return moved(fact, by) if by and fact.line > method.end_line else fact
