"""The documents as typed, saved or not, and what was parsed from them: once a version, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec, Workspace

from twinlens.lsp.parsing import ONE_AT_A_TIME
from twinlens.lsp.positions import Lines
from twinlens.source.definitions import read_source
from twinlens.source.mending import what_parses

T = TypeVar("T")

_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Document:
    """One version of a document. `path` is None where it is no file, as an untitled document is none."""

    uri: str
    path: Path | None
    version: int | None
    text: str
    codec: PositionCodec

    @cached_property
    def lines(self) -> Lines:
        """The text's lines, for turning columns into the client's and back."""
        return Lines.of(self.text, self.codec)


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """What a parser made of `document`, which may be older than what the person sees now."""

    document: Document
    value: T
    is_whole: bool = True
    """False where it is of the statements that parse alone."""


@dataclass(frozen=True, slots=True)
class _Run(Generic[T]):
    document: Document
    task: asyncio.Task[tuple[T, bool]]
    """The result, and whether it is of the whole text."""


class Documents:
    """The documents of the workspace.

    Effect: keeps the newest result of each parser and document until the document is closed.
    """

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._workspace = workspace
        self._runs: dict[tuple[str, Callable], _Run] = {}
        self._parsed: dict[tuple[str, Callable], Parsed] = {}
        self._kept: list[Callable[[Document], Any]] = []
        self._content_with_parts: set[Callable] = set()

    def get(self, uri: str) -> Document:
        """The document as it is now: as typed where it is open, else from disk.

        Raises `OSError` where it is neither open nor readable, and `SyntaxError` for an encoding that is not its own.
        """
        workspace = self._workspace()
        file = to_fs_path(uri)
        path = Path(file) if file is not None and uri.startswith("file:") else None
        typed = workspace.text_documents.get(uri)
        if typed is not None:
            return Document(uri, path, typed.version, typed.source, workspace.position_codec)
        if path is None:
            raise FileNotFoundError(f"{uri} is neither open nor a file")
        return Document(uri, path, None, read_source(path), workspace.position_codec)

    def open(self) -> list[Document]:
        """The open documents."""
        return [self.get(uri) for uri in list(self._workspace().text_documents)]

    async def parse(self, document: Document, parser: Callable[[str], T]) -> Parsed[T] | None:
        """`parser(document.text)`, run in a thread once a version, however many ask.

        While the text does not parse (`parser` raises `SyntaxError`): the result of the last version that did; of a
        document that never did, of what parses of it (`read_parts`), or None. `parser` is a module-level function,
        since it is part of what the result is remembered under.
        """
        return await self._remember(document, parser, document.text)

    async def read(self, document: Document, reader: Callable[[Document], T]) -> Parsed[T] | None:
        """As `parse`, for a reader that needs more than the text, such as the file's name."""
        return await self._remember(document, reader, document)

    def keep_read(self, reader: Callable[[Document], Any]) -> None:
        """Has `reader` read each document as it is opened and changed, so that there is a last version that parsed."""
        self._kept.append(reader)

    def read_parts(self, *functions: Callable) -> None:
        """Gives these parsers and readers, of a document that has not parsed yet, what parses of it."""
        self._content_with_parts.update(functions)

    async def changed(self, uri: str) -> None:
        """Reads what is kept read, once the person pauses."""
        document = self.get(uri)
        await asyncio.sleep(_PAUSE_SECONDS)
        still_open = uri in self._workspace().text_documents
        if still_open and self.get(uri).text == document.text:
            await asyncio.gather(*(self.read(document, reader) for reader in self._kept))

    async def _remember(self, document: Document, function: Callable[[Any], T], argument: Any) -> Parsed[T] | None:
        key = (document.uri, function)
        run = self._runs.get(key)
        if run is None or run.document.text != document.text:
            last = self._parsed.get(key)
            takes_parts = function in self._content_with_parts and (last is None or not last.is_whole)
            run = _Run(document, asyncio.create_task(asyncio.to_thread(_alone, function, argument, takes_parts)))
            self._runs[key] = run
        try:
            # A cancelled hover must not take the parse away from others that wait for it.
            value, is_whole = await asyncio.shield(run.task)
        except SyntaxError:
            return self._parsed.get(key)
        parsed = Parsed(document, value, is_whole)
        if self._runs.get(key) is run:
            self._parsed[key] = parsed
        return parsed

    def forget(self, uri: str) -> None:
        """Drops what was parsed from a document that was closed."""
        for kept in (self._runs, self._parsed):
            for key in [key for key in kept if key[0] == uri]:
                del kept[key]


def _alone(function: Callable[[Any], Any], argument: Document | str, takes_parts: bool) -> tuple[Any, bool]:
    """What `function` makes of the document or text, and whether it had the whole of it."""
    with ONE_AT_A_TIME:
        try:
            return function(argument), True
        except SyntaxError:
            if not takes_parts:
                raise
            text = argument if isinstance(argument, str) else argument.text
            parts = what_parses(text)
            return function(parts if isinstance(argument, str) else replace(argument, text=parts)), False
