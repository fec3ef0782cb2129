"""Which classes are so like one of the library that a maintainer would ask to inherit from it."""

from __future__ import annotations

import re

from twinlens.similarity.answers import Match
from twinlens.source.definitions import Definition

DEFAULT_THRESHOLD = 0.96
"""On a scale up to 1. Of one class in four of 4.53.0's modular models it flags half, and 96 % of those
have a true parent (`benchmarks/similarity.py --precision 4.53.0 --every 4`)."""

_IGNORED = re.compile(r"#\s*twinlens:\s*ignore(\[[^\]]*\bsimilar-class\b[^\]]*\])?\s*$")
_COPIED = re.compile(r"#\s*Copied from\b")
_GENERATED = re.compile(r"automatically generated from .*modular_\w+\.py")


def resemblance(match: Match) -> float:
    """How alike the two are, from 0 to 1: the mean of both scores, or the Jaccard score alone."""
    return match.jaccard if match.embedding is None else (match.embedding + match.jaccard) / 2


def may_be_flagged(definition: Definition, lines: list[str]) -> bool:
    """Whether a class is written by hand and not silenced: `# twinlens: ignore` stands on its line or above it.

    `lines` are those of the file. A class under a `# Copied from` comment has said where it comes from.
    """
    if definition.kind != "class":
        return False
    above = lines[definition.first_line - 2] if definition.first_line > 1 else ""
    beside = lines[definition.line - 1]
    return not (_IGNORED.search(beside) or _IGNORED.search(above) or _COPIED.search(above))


def is_generated(text: str) -> bool:
    """Whether the converter wrote the file from a modular file: then its classes are as they should be."""
    return _GENERATED.search(text[:2000]) is not None
