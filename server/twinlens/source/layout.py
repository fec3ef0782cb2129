"""Source as logical lines of tokens, so that code is compared without its layout."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      \n[ ]*                                          # a line end with the next line's indentation
    | [A-Za-z_]\w* | \d[\w.]*
    | '''(?:[^\\]|\\.)*?''' | \"\"\"(?:[^\\]|\\.)*?\"\"\"
    | '(?:[^'\\\n]|\\.)*' | "(?:[^"\\\n]|\\.)*"
    | \.\.\. | \*\*=? | //=? | -> | [-+*/%@&|^<>=!:]=
    | \S
    """,
    re.VERBOSE | re.DOTALL,
)
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_STUB = ("pass",)


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line: its indentation in spaces, and its tokens."""

    indent: int
    tokens: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.tokens)


def logical_lines(code: str) -> tuple[Line, ...]:
    """The logical lines of `code`, which has no comments: line breaks inside brackets, commas before a closing bracket
    and blank lines are gone, and a body of `...` is one of `pass`.
    """
    return tuple(_lines(code))


def sameness(lines: Sequence[Line]) -> str:
    """16 hexadecimal digits that are equal for code of equal tokens and equal nesting."""
    levels: list[int] = []
    text = []
    for line in lines:
        while levels and levels[-1] >= line.indent:
            levels.pop()
        text.append(f"{len(levels)} {line.text}")
        levels.append(line.indent)
    return hashlib.blake2b("\n".join(text).encode(), digest_size=8).hexdigest()


def _lines(code: str) -> Iterator[Line]:
    depth, indent = 0, 0
    tokens: list[str] = []
    for token in _TOKEN.findall(code):
        if token[0] == "\n":
            if depth == 0:
                yield from _finished(indent, tokens)
                tokens, indent = [], len(token) - 1
            continue
        step = _DEPTH.get(token, 0)
        if step:
            depth = max(0, depth + step)
            if step < 0 and tokens and tokens[-1] == ",":
                tokens.pop()
        tokens.append(token)
    yield from _finished(indent, tokens)


def _finished(indent: int, tokens: list[str]) -> Iterator[Line]:
    if tokens == ["..."]:
        yield Line(indent, _STUB)
    elif tokens[-2:] == [":", "..."]:
        yield Line(indent, tuple(tokens[:-1]))
        yield Line(indent + 4, _STUB)
    elif tokens:
        yield Line(indent, tuple(tokens))
