"""A finding's fix as an edit of lines."""

from __future__ import annotations

from collections.abc import Sequence

from twinlens.skips.lints.finding import Fix


def edited_lines(fix: Fix, lines: Sequence[str]) -> tuple[int, int, str]:
    """What a fix replaces, as two line numbers from 0, the second excluded, and the text that takes the place."""
    first, last = fix.first_line - 1, fix.last_line
    if fix.kind == "append":
        return first, last, "".join(f"{line}\n" for line in lines[first : last - 1]) + f"{lines[last - 1]}{fix.text}\n"
    if fix.kind == "move below":
        return first, fix.below, "".join(f"{line}\n" for line in (*lines[last : fix.below], *lines[first:last]))
    if fix.text:
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        return first, last, f"{indent}{fix.text}\n"
    blank_before = first > 0 and not lines[first - 1].strip()
    while blank_before and last < len(lines) and not lines[last].strip():
        last += 1
    # Between two members one blank line stays; at the end of a class the two that stand there.
    if blank_before and last < len(lines) and lines[last][:1].isspace():
        return first, last, ""
    return (first - 1 if blank_before else first), fix.last_line, ""
