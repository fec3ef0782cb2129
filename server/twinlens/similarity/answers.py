"""What is asked of the index, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinlens.source.definitions import Definition, Kind, read_definitions
from twinlens.source.library import file_stem
from twinlens.source.sanitise import model_prefixes, sanitise


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """A definition of the file that is asked about, with the model's own name taken out of its code."""

    name: str
    kind: Kind
    line: int
    bases: tuple[str, ...]
    methods: tuple[str, ...]
    sanitised: str


@dataclass(frozen=True, slots=True)
class QueryFile:
    """All definitions of one file: a class is judged beside its neighbours."""

    model: str
    definitions: tuple[QueryDefinition, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A definition of the library that resembles the one asked about.

    `line` counts from 1; `embedding` is a cosine, None where there are no embeddings; `jaccard` is |A∩B| / |A∪B| over
    identifier sets; `in_both` tells whether it stands among the best by either score.
    """

    model: str
    name: str
    path: str
    line: int
    embedding: float | None
    jaccard: float
    in_both: bool

    @property
    def identity(self) -> str:
        return f"{self.model}::{self.name}"


@dataclass(frozen=True, slots=True)
class RankedMatch:
    """One entry of the ranking: a match, its twins (equal sanitised source) and the ancestors it descends from.

    `score`, from 0 to 1, estimates the chance that a maintainer would inherit from it.
    """

    match: Match
    score: float
    twins: tuple[str, ...]
    ancestors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The best matches by each score, what stands in both, and the ranking over them.

    `parents` are what the library's own definition of that name inherits from in its modular file, or was copied from.
    """

    embedding: tuple[Match, ...]
    jaccard: tuple[Match, ...]
    intersection: tuple[str, ...]
    ranked: tuple[RankedMatch, ...]
    parents: tuple[Match, ...] = ()


def query_file(text: str, path: Path, model: str) -> QueryFile:
    """`text` as a question to the index. Raises `SyntaxError` where it does not parse."""
    return query_of_definitions(read_definitions(text), (model, file_stem(path)), model)


def query_of_definitions(definitions: Sequence[Definition], hints: Iterable[str], model: str) -> QueryFile:
    """A question from definitions already read; `hints` are names of the model's folder and file."""
    hints = tuple(hints)
    prefixes = model_prefixes([found.name for found in definitions if found.kind == "class"], hints)
    return QueryFile(
        model,
        tuple(
            QueryDefinition(
                found.name,
                found.kind,
                found.line,
                found.bases,
                found.methods,
                sanitise(found.code, prefixes, hints),
            )
            for found in definitions
        ),
    )
