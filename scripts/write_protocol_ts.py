"""Writes extension/src/protocol.ts from server/twinlens/lsp/protocol.py: `python scripts/write_protocol_ts.py`.

With `--check` it writes nothing and exits with 1 where the two differ.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from lsprotocol.types import Position, Range
from twinlens.lsp import protocol

TARGET = Path(__file__).parent.parent / "extension" / "src" / "protocol.ts"
IMPORTED = (Position, Range)
SIMPLE = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", object: "unknown"}


def render() -> str:
    """The text of protocol.ts."""
    body = "\n".join([*map(interface, shapes()), *tables()])
    imported = ", ".join(shape.__name__ for shape in IMPORTED if f": {shape.__name__}" in body)
    lines = [
        "// Written by scripts/write_protocol_ts.py from server/twinlens/lsp/protocol.py: change that file instead."
    ]
    if imported:
        lines.append(f'\nimport type {{ {imported} }} from "vscode-languageclient";')
    return "\n".join(lines) + "\n\n" + body


def shapes() -> list[type[attrs.AttrsInstance]]:
    """The attrs classes of protocol.py, in its order."""
    return [
        member for member in vars(protocol).values() if attrs.has(member) and member.__module__ == protocol.__name__
    ]


def interface(shape: type[attrs.AttrsInstance]) -> str:
    """One shape as an interface."""
    hints = get_type_hints(shape)
    lines = [comment(inspect.getdoc(shape) or "")]
    fields = [
        f"  readonly {camel(field.name)}{'' if field.default is attrs.NOTHING else '?'}: "
        f"{spelled(hints[field.name], optional=field.default is None)};"
        for field in attrs.fields(shape)
    ]
    if not fields:
        return "\n".join([*lines, f"export type {shape.__name__} = Record<string, never>;", ""])
    return "\n".join([*lines, f"export interface {shape.__name__} {{", *fields, "}", ""])


def tables() -> Iterator[str]:
    """Which method carries what."""
    yield "export interface Requests {"
    for method, (params, result) in protocol.REQUESTS.items():
        yield f'  "{method}": {{ params: {params.__name__}; result: {result.__name__} }};'
    yield "}\n"
    yield "export interface Notifications {"
    for method, params in protocol.NOTIFICATIONS.items():
        yield f'  "{method}": {params.__name__};'
    yield "}\n"


def spelled(hint: Any, *, optional: bool = False) -> str:
    """A Python type as TypeScript spells it. `optional`: a field that is left out in place of null."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(spelled(option) for option in arguments if not (optional and option is type(None)))
    if origin is Literal:
        return " | ".join(f'"{value}"' if isinstance(value, str) else str(value).lower() for value in arguments)
    if origin in (list, tuple):
        element = spelled(arguments[0])
        return f"readonly ({element})[]" if " " in element else f"readonly {element}[]"
    if origin is dict:
        return f"Readonly<Record<string, {spelled(arguments[1])}>>"
    if hint in SIMPLE:
        return SIMPLE[hint]
    if hint is Any:
        return "unknown"
    if attrs.has(hint):
        return hint.__name__
    raise TypeError(f"protocol.ts has no spelling for {hint}")


def comment(text: str) -> str:
    """A docstring as a JSDoc comment."""
    lines = text.replace("``", "`").splitlines()
    if len(lines) == 1:
        return f"/** {lines[0]} */"
    return "\n".join(["/**", *(f" * {line}".rstrip() for line in lines), " */"])


def camel(name: str) -> str:
    """A field's name on the wire, as lsprotocol's converter writes it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def main() -> int:
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 where protocol.ts differs")
    text = render()
    if not parser.parse_args().check:
        TARGET.write_text(text, encoding="utf-8")
    elif text != TARGET.read_text(encoding="utf-8"):
        sys.stderr.write(f"{TARGET.name} differs from protocol.py; run: python scripts/write_protocol_ts.py\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
