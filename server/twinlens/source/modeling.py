"""Whether a file holds model code at all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinlens.source.definitions import Definition

_MODULE_LIKE = re.compile(r"(Module|Model|Layer)$")


def is_modeling(definitions: Sequence[Definition]) -> bool:
    """Whether a class among `definitions` looks like a neural module: by its bases, or because it has a `forward`."""
    return any(
        definition.kind == "class"
        and ("forward" in definition.methods or any(_MODULE_LIKE.search(base) for base in definition.bases))
        for definition in definitions
    )
