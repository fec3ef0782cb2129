"""How the similarity index is, in words for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

State = Literal["starting", "building", "ready", "jaccard-only", "failed", "stopped"]

_STAGES = {
    "waiting": "Waiting for another window that is building the index",
    "reading": "Reading the library",
    "tokens": "Reading the library",
    "fitting": "Learning the library's vocabulary",
    "encoding": "Embedding the library's definitions",
    "comparing": "Comparing the library's definitions",
    "writing": "Writing the index",
    "done": "Writing the index",
}


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """`message` is one sentence, `remedy` the one command that adds what is missing, `definitions` a count."""

    state: State
    percent: int | None = None
    definitions: int = 0
    library: str | None = None
    message: str = ""
    remedy: str | None = None
    updates: int = 0
    """How many changes of library files were taken in since the index was loaded."""


def ready(
    definitions: int, library: str | None, embeddings: bool, missing: Sequence[str], interpreter: str
) -> IndexStatus:
    """The status of an index that answers; `missing` are the packages that `interpreter` lacks for embeddings."""
    found = f"{definitions:,} definitions of {library}"
    if embeddings:
        return IndexStatus("ready", None, definitions, library, f"{found}.")
    if not missing:
        sentence = f"{found}, compared by identifiers until the embeddings are there."
        return IndexStatus("jaccard-only", None, definitions, library, sentence)
    sentence = f"{found}, compared by identifiers alone: the interpreter lacks {', '.join(missing)}."
    remedy = f"{interpreter} -m pip install {' '.join(missing)}"
    return IndexStatus("jaccard-only", None, definitions, library, sentence, remedy)


def building(before: IndexStatus, stage: str, percent: int) -> IndexStatus:
    """The status while a build is at `stage` (see `build.Stage`)."""
    sentence = f"{_STAGES[stage]} ({percent} %)."
    return replace(before, state="building", percent=percent, message=sentence, remedy=None)
