"""Between the columns of `ast` and the columns of the client.

`ast` counts lines from 1 and columns in UTF-8 bytes; LSP counts lines from 0 and columns in the unit that client and
server agreed on (UTF-16 in VS Code). Both end a line at `\\n`, `\\r\\n` or `\\r` and nowhere else, unlike
`str.splitlines`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsprotocol import types
from pygls.workspace import PositionCodec

_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Word:
    """An identifier: where it starts and ends in `line`, in code points."""

    text: str
    line: str
    start: int
    end: int
    range: types.Range


@dataclass(frozen=True, slots=True)
class Lines:
    """A text split as `ast` and LSP split it."""

    lines: tuple[str, ...]
    codec: PositionCodec

    @classmethod
    def of(cls, text: str, codec: PositionCodec) -> Lines:
        """The lines of `text`, without their ends."""
        return cls(tuple(_LINE_END.split(text)), codec)

    def position(self, line: int, column: int) -> types.Position:
        """The client's position of line `line` (from 1) and column `column` (UTF-8 bytes from 0)."""
        text = self._line(line - 1).encode("utf-8", "surrogatepass")[:column]
        return types.Position(line - 1, self.codec.client_num_units(text.decode("utf-8", "ignore")))

    def range(self, line: int, column: int, end_line: int, end_column: int) -> types.Range:
        """The client's range between two of `ast`'s places; for a node: `lineno`, `col_offset`, `end_…`."""
        return types.Range(self.position(line, column), self.position(end_line, end_column))

    def name_range(self, line: int, column: int, name: str) -> types.Range:
        """The client's range of `name`, which starts at line `line` (from 1) and column `column` (UTF-8 bytes)."""
        return self.range(line, column, line, column + len(name.encode()))

    def place(self, position: types.Position) -> tuple[int, int]:
        """The line (from 1) and column (UTF-8 bytes) of a client's position; the inverse of `position`."""
        before = self._line(position.line)[: self._code_points(position)]
        return position.line + 1, len(before.encode("utf-8", "surrogatepass"))

    def word(self, position: types.Position) -> Word | None:
        """The identifier that `position` touches."""
        line = self._line(position.line)
        at = self._code_points(position)
        for found in _WORD.finditer(line):
            if found.start() <= at <= found.end():
                edges = (
                    types.Position(position.line, self.codec.client_num_units(line[:edge])) for edge in found.span()
                )
                return Word(found.group(), line, found.start(), found.end(), types.Range(*edges))
        return None

    def _line(self, number: int) -> str:
        return self.lines[number] if 0 <= number < len(self.lines) else ""

    def _code_points(self, position: types.Position) -> int:
        units = 0
        for index, character in enumerate(line := self._line(position.line)):
            if units >= position.character:
                return index
            units += self.codec.client_num_units(character)
        return len(line)
