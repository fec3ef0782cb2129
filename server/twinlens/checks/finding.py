"""What a check reports, and how it can be mended."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the text: lines from 1, columns in UTF-8 bytes from 0, as `ast` counts."""

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        """The span of a node that was parsed."""
        return cls(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` in the place of `span`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A safe way to mend a finding."""

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake, at its place."""

    code: str
    message: str
    span: Span
    fix: Fix | None = None
