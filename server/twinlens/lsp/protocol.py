"""Our own requests and notifications, and the shapes that they carry.

`extension/src/protocol.ts` is written from this file by `scripts/write_protocol_ts.py`; a test fails where the two
differ. Fields are snake_case here and camelCase on the wire. A number that can be NaN or infinite is a `Number`, since
JSON knows neither: `to_number` writes it, and what is written some other way is refused (jsonrpc.py).

To add a request: its params (a request without any takes `Nothing`) and result as frozen attrs classes, its name as a
constant, and a line in `REQUESTS`.
"""

from __future__ import annotations

import math
from typing import Literal

import attrs
from lsprotocol import types

Number = float | Literal["NaN", "Infinity", "-Infinity"]


def to_number(value: float) -> Number:
    """`value` as JSON can carry it."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


@attrs.frozen
class InitializationOptions:
    """What the client says about itself at `initialize`. Empty strings and missing fields mean the server's defaults.

    `interpreter` is the Python that has the user's packages, `cache_dir` a folder for the index. `trusted` is false in
    Restricted Mode: then nothing of the workspace may be run.
    """

    interpreter: str = ""
    cache_dir: str = ""
    trusted: bool = True


@attrs.frozen
class Nothing:
    """The params of a request that needs none, and the result of one that answers none."""


@attrs.frozen
class SimilarClassesParams:
    """The place of a class's or function's name in a document."""

    uri: str
    position: types.Position


@attrs.frozen
class SimilarClass:
    """One entry of a ranking: a definition of the library. `path` is absolute, `line` counts from 1.

    `embedding` is null while only the Jaccard index is there. `in_both`: it stands in both top fives.
    """

    model: str
    name: str
    path: str
    line: int
    score: float
    embedding: float | None
    jaccard: float
    in_both: bool
    twins: list[str]
    ancestors: list[str]


@attrs.frozen
class SimilarClassesResult:
    """`definition` is null where the place names no definition of the document. `note` says what the list lacks."""

    definition: str | None
    note: str | None
    matches: list[SimilarClass]


@attrs.frozen
class IndexStatus:
    """How the index over the library stands. `remedy` is the one command that adds what is missing."""

    state: Literal["starting", "building", "ready", "jaccard-only", "failed", "stopped"]
    percent: int | None
    definitions: int
    library: str | None
    message: str
    remedy: str | None


@attrs.frozen
class SimilarInFileParams:
    """A document whose definitions are to be compared."""

    uri: str


@attrs.frozen
class SimilarDefinition:
    """A definition of the document and what resembles it; `line` counts from 1."""

    name: str
    kind: Literal["class", "function"]
    line: int
    matches: list[SimilarClass]


@attrs.frozen
class SimilarInFileResult:
    """`note` says what the answer lacks, or why there is none."""

    note: str | None
    definitions: list[SimilarDefinition]


@attrs.frozen
class ClassTextParams:
    """A definition of a file; `normalised`: with the model's own name replaced by `Model`."""

    uri: str
    name: str
    normalised: bool


@attrs.frozen
class ClassTextResult:
    """The definition's source."""

    text: str


@attrs.frozen
class LibraryClass:
    """A class of the library, as a `SimilarClass` names it."""

    model: str
    name: str
    path: str


@attrs.frozen
class InheritParams:
    """Have the class `name` of the document inherit from `parent` in the modular file beside it."""

    uri: str
    name: str
    parent: LibraryClass


@attrs.frozen
class InheritResult:
    """The modular file's path and whole new text; `notes` are sentences to read before relying on it."""

    path: str
    text: str
    notes: list[str]


SIMILAR_CLASSES = "twinlens/similarClasses"
SIMILAR_IN_FILE = "twinlens/similarInFile"
CLASS_TEXT = "twinlens/classText"
INHERIT = "twinlens/inherit"
REBUILD_INDEX = "twinlens/rebuildIndex"
INDEX_STATUS = "twinlens/indexStatus"

REQUESTS: dict[str, tuple[type[attrs.AttrsInstance], type[attrs.AttrsInstance]]] = {
    SIMILAR_CLASSES: (SimilarClassesParams, SimilarClassesResult),
    SIMILAR_IN_FILE: (SimilarInFileParams, SimilarInFileResult),
    CLASS_TEXT: (ClassTextParams, ClassTextResult),
    INHERIT: (InheritParams, InheritResult),
    REBUILD_INDEX: (Nothing, Nothing),
}

NOTIFICATIONS: dict[str, type[attrs.AttrsInstance]] = {
    INDEX_STATUS: IndexStatus,
}
