"""Who has written this class already: hover, and the matches for the client's quick pick."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from twinlens.lsp import protocol
from twinlens.lsp.documents import Document
from twinlens.lsp.jsonrpc import Refused
from twinlens.lsp.modeling import on_wire, read_modeling, search
from twinlens.lsp.positions import Word
from twinlens.lsp.services import Services
from twinlens.similarity.answers import Answer, Match, RankedMatch
from twinlens.similarity.service import SearchUnavailableError
from twinlens.similarity.status import IndexStatus
from twinlens.source.definitions import Definition

IN_A_HOVER = 5
IN_A_QUICK_PICK = 20


def register(server: LanguageServer, services: Services) -> None:
    """Adds the hover, the requests of the quick pick and of *Rebuild Index*, and keeps the index alive."""
    _keep_index(services)
    services.documents.keep_read(read_modeling)
    services.documents.read_parts(read_modeling)

    @services.contribute.hover
    async def hover(document: Document, position: types.Position) -> str | None:
        read = await services.documents.read(document, read_modeling)
        if read is None or not read.value.is_modeling:
            return None
        definition = _named(document.lines.word(position), read.value.definitions)
        if definition is None:
            return None
        try:
            (answer,) = await search(services, read, [definition.name], IN_A_HOVER)
        except SearchUnavailableError as error:
            return f"*{error}*"
        return "\n".join(_markdown(definition.name, answer, services.index.status.current))

    @server.feature(protocol.SIMILAR_CLASSES)
    async def similar_classes(params: protocol.SimilarClassesParams) -> protocol.SimilarClassesResult:
        document = services.documents.get(params.uri)
        read = await services.documents.read(document, read_modeling)
        if read is None:
            raise Refused(f"{_file_name(document)} does not parse, and never did while it was open.")
        word = document.lines.word(params.position)
        definitions = read.value.definitions
        definition = _named(word, definitions) or _around(document.lines.place(params.position)[0], definitions)
        if definition is None:
            return protocol.SimilarClassesResult(None, "The cursor is in no class or function.", [])
        try:
            (answer,) = await search(services, read, [definition.name], IN_A_QUICK_PICK)
        except SearchUnavailableError as error:
            raise Refused(str(error)) from error
        note = _note(services.index.status.current)
        return protocol.SimilarClassesResult(definition.name, note, [on_wire(ranked) for ranked in answer.ranked])

    @server.feature(protocol.REBUILD_INDEX)
    async def rebuild_index(_: protocol.Nothing) -> protocol.Nothing:
        service = services.index.service
        if service is None:
            raise Refused("The index is stopped; restart the server.")
        await service.rebuild()
        if service.status.state == "failed":
            raise Refused(service.status.message)
        return protocol.Nothing()


def _keep_index(services: Services) -> None:
    services.contribute.start(services.index.start)
    services.contribute.stop(services.index.stop)
    restarts: set[asyncio.Task[None]] = set()

    def restart(_: object) -> None:
        task = asyncio.ensure_future(services.index.start())
        restarts.add(task)
        task.add_done_callback(restarts.discard)

    @services.contribute.files_changed
    async def files_changed(paths: Sequence[Path]) -> None:
        if services.index.service is not None:
            await services.index.service.update(paths)

    def tell(status: IndexStatus) -> None:
        told = dataclasses.asdict(status)
        del told["updates"]
        services.editor.notify(protocol.INDEX_STATUS, protocol.IndexStatus(**told))

    services.settings.on_change(restart)
    services.index.status.on_change(tell)


def _named(word: Word | None, definitions: Sequence[Definition]) -> Definition | None:
    """The definition that `word` names; not where it is an attribute, or a method's own name."""
    if word is None or word.line[: word.start].rstrip().endswith("."):
        return None
    indented_def = word.line[:1].isspace() and word.line[: word.start].split()[-1:] == ["def"]
    found = next((definition for definition in definitions if definition.name == word.text), None)
    return None if indented_def else found


def _around(line: int, definitions: Sequence[Definition]) -> Definition | None:
    return next((found for found in definitions if found.first_line <= line <= found.end_line), None)


def _markdown(name: str, answer: Answer, status: IndexStatus) -> Iterator[str]:
    if answer.ranked:
        with_embedding = any(ranked.match.embedding is not None for ranked in answer.ranked)
        scores = ["Embedding", "Jaccard"] if with_embedding else ["Jaccard"]
        yield _row([f"Similar to {name}", "Model", *scores])
        yield "|:--|:--|" + "--:|" * len(scores)
        yield from (_row(_cells(ranked, with_embedding)) for ranked in answer.ranked)
        if any(ranked.match.in_both for ranked in answer.ranked):
            yield ""
            yield "✓ among the five best by both scores"
    else:
        yield f"Nothing in the library resembles **{name}**."
    if answer.parents:
        parents = ", ".join(f"{_link(parent)} of {parent.model}" for parent in answer.parents)
        yield ""
        yield f"In the library, {name} comes from {parents}."
    note = _note(status)
    if note:
        yield ""
        yield f"*{note}*"
    if status.remedy:
        yield ""
        yield f"`{status.remedy}`"


def _cells(ranked: RankedMatch, with_embedding: bool) -> list[str]:
    match = ranked.match
    link = _link(match)
    twins = f" and {len(ranked.twins)} more" if ranked.twins else ""
    scores = [match.embedding, match.jaccard] if with_embedding else [match.jaccard]
    return [link + (" ✓" if match.in_both else ""), match.model + twins, *map(_score, scores)]


def _link(match: Match) -> str:
    return f"[{match.name}]({Path(match.path).as_uri()}#L{match.line})"


def _row(cells: Sequence[str]) -> str:
    # The editor sets a table's cells edge to edge.
    return f"| {'&ensp; | '.join(cells)} |"


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def _note(status: IndexStatus) -> str | None:
    return None if status.state == "ready" else status.message


def _file_name(document: Document) -> str:
    return document.path.name if document.path else document.uri
