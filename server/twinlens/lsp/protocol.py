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
    """`note` says what the answer lacks, or why there is none; `coverage` which models the file resembles most."""

    note: str | None
    coverage: str
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


@attrs.frozen
class TraceParams:
    """Run one forward of `name`, a class or a recipe of the file `uri`, and record it.

    `id` is the client's, and stands in what is said while it runs. `recipe` is another target to run instead, as a
    `RecipeEntry` has it. `only`: keep values of modules of these classes or paths alone.
    """

    id: str
    uri: str
    name: str
    recipe: str = ""
    dtype: str = ""
    stats_only: bool = False
    only: list[str] = attrs.field(factory=list)


@attrs.frozen
class TraceEntry:
    """A trace of the workspace. `name` is its folder's, `created` UTC in ISO 8601, `summary` a file's path.

    `status`: `complete`, `raised`, `unfinished` or `unreadable`; `error` says more of the second and the last.
    """

    folder: str
    name: str
    class_name: str
    target: str
    dtype: str
    created: str
    seconds: float | None
    bytes: int
    status: Literal["complete", "raised", "unfinished", "unreadable"]
    error: str
    summary: str | None


@attrs.frozen
class TraceResult:
    """How it went. `folder` and `trace` are null where no trace came of it.

    `status`: `complete`, or `raised` by the forward (the trace is there up to that call), `failed` before it
    (`traceback` tells more where the user's code raised), `no recipe` for the class, `no torch` in the interpreter.
    `message` is the sentence to show for all but the first.
    """

    status: Literal["complete", "raised", "failed", "no recipe", "no torch"]
    message: str
    traceback: str
    trace: TraceEntry | None


@attrs.frozen
class TraceProgress:
    """`detail` is what is being prepared, or the module path that runs, with `count` calls before it."""

    id: str
    detail: str
    count: int | None


@attrs.frozen
class TraceOutput:
    """What the process that traces printed."""

    text: str


@attrs.frozen
class TraceList:
    """The traces of all folders of the workspace, the newest first."""

    traces: list[TraceEntry]


@attrs.frozen
class RecipesParams:
    """The file whose workspace's recipes are asked for."""

    uri: str


@attrs.frozen
class RecipeEntry:
    """A recipe; `recipe` is what `TraceParams` takes, `target` the class that it says it is for, or empty."""

    name: str
    recipe: str
    target: str
    path: str
    line: int


@attrs.frozen
class RecipeList:
    """`folder` is where the workspace's recipes are, or would be."""

    folder: str
    recipes: list[RecipeEntry]


@attrs.frozen
class RecipeTemplateParams:
    """A class of a file."""

    uri: str
    name: str


@attrs.frozen
class RecipeTemplate:
    """A new recipe: the path of a file that does not exist yet, and its text."""

    path: str
    text: str


@attrs.frozen
class PatchMatchesParams:
    """A key of a `register_patch_mapping` call in a document."""

    uri: str
    key: str


@attrs.frozen
class PatchedClass:
    """A class that a key matches. `path` is absolute, `line` counts from 1."""

    name: str
    path: str
    line: int


@attrs.frozen
class PatchMatchesResult:
    """The module classes that a key matches, by name."""

    classes: list[PatchedClass]


SkipState = Literal[
    "runs", "conditional", "gated", "skipped", "disabled", "shadowed", "empty", "vacuous", "phantom", "mixed"
]


@attrs.frozen
class SkipPlacesParams:
    """Asks where it is decided that a test (in all models), or the tests of a class of the document, don't run."""

    uri: str
    test: str | None
    class_name: str | None


@attrs.frozen
class SkipPlace:
    """A line, counted from 1, that keeps a test of a class from running. `path` is absolute."""

    path: str
    line: int
    model: str
    class_name: str
    test: str
    state: SkipState
    reason: str


@attrs.frozen
class SkipPlacesResult:
    """The places, each once."""

    places: list[SkipPlace]


@attrs.frozen
class SkipStateCount:
    """How many models are in one state."""

    state: SkipState
    models: int


@attrs.frozen
class SkippedTest:
    """A common test: `skipped` of the `models` that inherit it don't run it, `mixed` more only in some classes."""

    name: str
    origin: str
    path: str
    line: int
    skipped: int
    mixed: int
    models: int
    states: list[SkipStateCount]


@attrs.frozen
class SkippedTestsResult:
    """The common tests of the workspace's checkout, the least run first. `note` says why there are none."""

    note: str | None
    tests: list[SkippedTest]


@attrs.frozen
class SkippingModelsParams:
    """Asks what becomes of a common test in each model."""

    test: str


@attrs.frozen
class SkippingClass:
    """A class that inherits the test, with the line, counted from 1, that decides. `path` is absolute."""

    name: str
    path: str
    line: int
    state: SkipState
    reason: str


@attrs.frozen
class SkippingModel:
    """A model with the classes that inherit the test."""

    model: str
    state: SkipState
    classes: list[SkippingClass]


@attrs.frozen
class SkippingModelsResult:
    """The models that inherit the test, by name."""

    models: list[SkippingModel]


@attrs.frozen
class DiffOpenParams:
    """Compares two traces (folders or summary files) and keeps the diff open as `id`; one that is open is replaced.

    `rtol` is a relative error of the user's own, below 0 for the noise floor of the dtype. `replay` runs the port
    again, each of its modules on the reference's inputs; both traces must say what they were made from.
    """

    id: str
    reference: str
    port: str
    rtol: float = -1.0
    replay: bool = False


@attrs.frozen
class DiffOpened:
    """`table` is a JSON file with all that the page shows at first; `map` the file that holds pairs made by hand."""

    table: str
    map: str
    outcome: Literal["agree", "differ", "inputs differ", "not comparable"]
    reason: str


@attrs.frozen
class DiffRowParams:
    """Asks for all that is known of one row of an open diff."""

    id: str
    row: int


@attrs.frozen
class DiffDetails:
    """`json` is what twinlens/diffing/details.py says of a row; the page reads it."""

    json: str


@attrs.frozen
class DiffPairParams:
    """Two module paths to pair by hand, or to take apart. The diff stays as it was until it is opened again."""

    id: str
    reference: str
    port: str
    apart: bool = False


@attrs.frozen
class DiffId:
    """An open diff."""

    id: str


@attrs.frozen
class DiffSummaries:
    """Two JSON files for a text diff: paired modules under one name, numbers that agree alike."""

    reference: str
    port: str


SIMILAR_CLASSES = "twinlens/similarClasses"
SIMILAR_IN_FILE = "twinlens/similarInFile"
CLASS_TEXT = "twinlens/classText"
INHERIT = "twinlens/inherit"
REBUILD_INDEX = "twinlens/rebuildIndex"
INDEX_STATUS = "twinlens/indexStatus"
SKIP_PLACES = "twinlens/skipPlaces"
SKIPPED_TESTS = "twinlens/skippedTests"
SKIPPING_MODELS = "twinlens/skippingModels"
SKIPS_CHANGED = "twinlens/skipsChanged"
TRACE = "twinlens/trace"
TRACES = "twinlens/traces"
RECIPES = "twinlens/recipes"
RECIPE_TEMPLATE = "twinlens/recipeTemplate"
PATCH_MATCHES = "twinlens/patchMatches"
DIFF_OPEN = "twinlens/diffOpen"
DIFF_ROW = "twinlens/diffRow"
DIFF_PAIR = "twinlens/diffPair"
DIFF_SUMMARIES = "twinlens/diffSummaries"
DIFF_CLOSE = "twinlens/diffClose"
TRACE_PROGRESS = "twinlens/traceProgress"
TRACE_OUTPUT = "twinlens/traceOutput"

REQUESTS: dict[str, tuple[type[attrs.AttrsInstance], type[attrs.AttrsInstance]]] = {
    SIMILAR_CLASSES: (SimilarClassesParams, SimilarClassesResult),
    SIMILAR_IN_FILE: (SimilarInFileParams, SimilarInFileResult),
    CLASS_TEXT: (ClassTextParams, ClassTextResult),
    INHERIT: (InheritParams, InheritResult),
    REBUILD_INDEX: (Nothing, Nothing),
    SKIP_PLACES: (SkipPlacesParams, SkipPlacesResult),
    SKIPPED_TESTS: (Nothing, SkippedTestsResult),
    SKIPPING_MODELS: (SkippingModelsParams, SkippingModelsResult),
    TRACE: (TraceParams, TraceResult),
    TRACES: (Nothing, TraceList),
    RECIPES: (RecipesParams, RecipeList),
    RECIPE_TEMPLATE: (RecipeTemplateParams, RecipeTemplate),
    PATCH_MATCHES: (PatchMatchesParams, PatchMatchesResult),
    DIFF_OPEN: (DiffOpenParams, DiffOpened),
    DIFF_ROW: (DiffRowParams, DiffDetails),
    DIFF_PAIR: (DiffPairParams, Nothing),
    DIFF_SUMMARIES: (DiffId, DiffSummaries),
    DIFF_CLOSE: (DiffId, Nothing),
}

NOTIFICATIONS: dict[str, type[attrs.AttrsInstance]] = {
    INDEX_STATUS: IndexStatus,
    SKIPS_CHANGED: Nothing,
    TRACE_PROGRESS: TraceProgress,
    TRACE_OUTPUT: TraceOutput,
}
