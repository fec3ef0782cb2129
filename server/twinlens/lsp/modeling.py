"""A document as model code: its definitions, and the same as a question to the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinlens.lsp.documents import Document, Parsed
from twinlens.lsp.protocol import SimilarClass
from twinlens.lsp.services import Services
from twinlens.similarity.answers import Answer, QueryFile, RankedMatch, query_of_definitions
from twinlens.similarity.service import SearchUnavailableError
from twinlens.source.definitions import Definition, read_definitions
from twinlens.source.library import file_stem, model_of_file
from twinlens.source.modeling import is_modeling


@dataclass(frozen=True, slots=True)
class Modeling:
    """What was read from one version of a document."""

    definitions: tuple[Definition, ...]
    query: QueryFile
    is_modeling: bool


def read_modeling(document: Document) -> Modeling:
    """For `services.documents.read`. Raises `SyntaxError` where the text does not parse."""
    definitions = read_definitions(document.text)
    stem = file_stem(document.path) if document.path else ""
    return Modeling(definitions, query_of_definitions(definitions, (stem,), stem), is_modeling(definitions))


async def search(services: Services, read: Parsed[Modeling], names: Sequence[str], top_k: int) -> list[Answer]:
    """One answer for each of the document's definitions `names`. Raises `SearchUnavailableError`."""
    service = services.index.service
    if service is None:
        raise SearchUnavailableError("The similarity index is stopped.")
    return await service.search(replace(read.value.query, model=model_of(services, read)), names, top_k)


def model_of(services: Services, read: Parsed[Modeling]) -> str:
    """The model that the document belongs to: by its place in the library, or by its name."""
    service, path = services.index.service, read.document.path
    return model_of_file(path, service.library if service else None) if path else read.value.query.model


def on_wire(ranked: RankedMatch) -> SimilarClass:
    """An entry of a ranking as the client reads it."""
    match = ranked.match
    return SimilarClass(
        match.model,
        match.name,
        match.path,
        match.line,
        ranked.score,
        match.embedding,
        match.jaccard,
        match.in_both,
        list(ranked.twins),
        list(ranked.ancestors),
    )
