"""The definitions of a Python file: its module-level classes and functions."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["class", "function"]

_BLOCKS = (ast.If, ast.Try, ast.With)
_STRING_OR_COMMENT = re.compile(
    r"""
      (?P<string>
          '''(?:[^\\]|\\.)*?''' | \"\"\"(?:[^\\]|\\.)*?\"\"\"
        | '(?:[^'\\\n]|\\.)*'   | "(?:[^"\\\n]|\\.)*"
      )
    | (?P<comment> \# [^\n]* )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A module-level class or function.

    `line`, `end_line` and `first_line` (the first decorator's, or `line`) count from 1; `name_column` counts UTF-8
    bytes from 0, as `ast` does. `source` is the text from `line` to `end_line`; `code` is `source` without docstrings,
    comments, imports and blank lines. `bases` and `decorators` are dotted names where they are names at all.
    """

    name: str
    kind: Kind
    first_line: int
    line: int
    end_line: int
    name_column: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    methods: tuple[str, ...]
    source: str
    code: str


def read_source(path: Path) -> str:
    """The text of a Python file, in the encoding that it declares (PEP 263), with `\\n` line ends.

    Raises `SyntaxError` for an unknown or wrong encoding, with the file in `filename` and not in `msg`, and `OSError`
    where the file cannot be read.
    """
    import io
    import tokenize

    content = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return io.TextIOWrapper(io.BytesIO(content), encoding).read()
    except UnicodeDecodeError as error:
        reason = f"it is not {error.encoding}: {error.reason} at byte {error.start}"
        raise SyntaxError(reason, (str(path), None, None, None)) from error
    except SyntaxError as error:
        raise SyntaxError(error.msg, (str(path), None, None, None)) from error


def parse(text: str) -> ast.Module:
    """`ast.parse` that answers every text a person can type with a tree or a `SyntaxError`.

    A null byte raises ValueError and deep nesting RecursionError or MemoryError in some Python versions.
    """
    try:
        return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or "the file is nested too deeply to parse") from error


def read_definitions(text: str) -> tuple[Definition, ...]:
    """The module-level definitions of `text`, in order; of two with one name the last one counts.

    Raises `SyntaxError` where `text` does not parse.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return definitions_of(parse(text), text.split("\n"))


def definitions_of(tree: ast.Module, lines: list[str]) -> tuple[Definition, ...]:
    """`read_definitions` of a text that is parsed already; `lines` are the text's."""
    found = {node.name: _definition(node, lines) for node in _module_level(tree.body)}
    return tuple(sorted(found.values(), key=lambda definition: definition.line))


def _module_level(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, _BLOCKS):
            yield from _module_level(node.body)
            for branch in ("orelse", "finalbody"):
                yield from _module_level(getattr(node, branch, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _module_level(handler.body)


def _definition(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> Definition:
    is_class = isinstance(node, ast.ClassDef)
    end_line = node.end_lineno or node.lineno
    segment = "\n".join(lines[node.lineno - 1 : end_line])
    keyword = "class" if is_class else "def"
    return Definition(
        name=node.name,
        kind="class" if is_class else "function",
        first_line=min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]),
        line=node.lineno,
        end_line=end_line,
        name_column=_name_column(lines[node.lineno - 1], keyword, node),
        bases=tuple(filter(None, map(dotted_name, node.bases))) if isinstance(node, ast.ClassDef) else (),
        decorators=tuple(filter(None, map(dotted_name, node.decorator_list))),
        methods=tuple(child.name for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))
        if is_class
        else (),
        source=textwrap.dedent(segment),
        code=_code(node, lines),
    )


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` for a name, an attribute, or what is called or subscripted by one; else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted_name(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Call):
        return dotted_name(node.func)
    if isinstance(node, ast.Subscript):
        return dotted_name(node.value)
    return ""


def _name_column(line: str, keyword: str, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    encoded = line.encode()
    name = node.name.encode()
    found = re.compile(rb"\b" + keyword.encode() + rb"\s+" + re.escape(name)).search(encoded, node.col_offset)
    return found.end() - len(name) if found else node.col_offset


def _code(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    kept: dict[int, str] = {
        number: lines[number - 1] for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for owner, body in _bodies(node):
        _drop_statements(owner, body, kept, lines)
    text = "\n".join(kept[number] for number in sorted(kept))
    text = strip_comments(textwrap.dedent(text))
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def _bodies(node: ast.stmt) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Each list of statements in `node`, with the node whose it is; a walk over all nodes would visit expressions."""
    waiting: list[ast.AST] = [node]
    while waiting:
        owner = waiting.pop()
        for field in ("body", "orelse", "finalbody"):
            body = getattr(owner, field, ())
            if body:
                yield owner, body
                waiting += body
        waiting += (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ()))


def _drop_statements(owner: ast.AST, body: list[ast.stmt], kept: dict[int, str], lines: list[str]) -> None:
    droppable = [
        child
        for place, child in enumerate(body)
        if _stands_alone(child, lines)
        and (isinstance(child, (ast.Import, ast.ImportFrom)) or (place == 0 and _is_docstring(owner, child)))
    ]
    for child in droppable:
        for number in range(child.lineno, (child.end_lineno or child.lineno) + 1):
            kept.pop(number, None)
    if droppable and len(droppable) == len(body):
        kept[droppable[0].lineno] = " " * droppable[0].col_offset + "pass"


def _is_docstring(owner: ast.AST, child: ast.stmt) -> bool:
    return (
        isinstance(owner, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Constant)
        and isinstance(child.value.value, str)
    )


def _stands_alone(node: ast.stmt, lines: list[str]) -> bool:
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :].strip()
    return not before.strip() and (not after or after.startswith(b"#"))


def strip_comments(text: str) -> str:
    """`text` without its comments; a `#` inside a string stays."""
    if "#" not in text:
        return text
    return _STRING_OR_COMMENT.sub(lambda found: found["string"] or "", text)
