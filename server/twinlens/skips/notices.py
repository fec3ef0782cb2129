"""What could not be read, as one sentence for a person, while everything else went on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Notice:
    """One thing that a scan had to leave out, with its place and what to do about it."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class ScanError(Exception):
    """A scan that can't begin; the text is one sentence that names the folder and the remedy."""
