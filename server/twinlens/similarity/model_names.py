"""How alike two models are by their names: a new `gemma3` inherits from `gemma2` sooner than from a stranger."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+")


def name_likeness(first: str, second: str) -> float:
    """|A∩B| / |A∪B| of the words in two models' names, without case, digits and underscores; in [0, 1]."""
    ours, theirs = _words(first), _words(second)
    return len(ours & theirs) / max(1, len(ours | theirs))


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(name.lower()))
