"""What still parses of a text that does not parse as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from twinlens.source.definitions import parse

_STATEMENT = re.compile(r"(?!(?:else|elif|except|finally)\b)[^\W\d]|@")
_DEFINITION = re.compile(r"(?:class|def|async\s+def)\b")


def what_parses(text: str) -> str:
    """`text` with empty lines for the top-level statements that do not parse, so that all others keep their places.

    Raises `SyntaxError` where nothing is left, or what is left does not parse either.
    """
    kept: list[str] = []
    for block in _blocks(text.split("\n")):
        try:
            parse("\n".join(block))
        except SyntaxError:
            kept += [""] * len(block)
        else:
            kept += block
    mended = "\n".join(kept)
    if not parse(mended).body:
        raise SyntaxError("no statement parses")
    return mended


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines, each from the begin of a top-level statement (its decorators among them) to the next."""
    block: list[str] = []
    waits_for_definition = False
    for line in lines:
        if _STATEMENT.match(line) and not waits_for_definition:
            yield block
            block = []
        if line.startswith("@"):
            waits_for_definition = True
        elif _DEFINITION.match(line):
            waits_for_definition = False
        block.append(line)
    yield block
