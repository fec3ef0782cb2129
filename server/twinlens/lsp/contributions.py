"""What features add to the methods that LSP allows one handler for.

`handlers.py` owns the one handler of each such method and joins what the contributors answer. A feature's `register`
adds its own with a decorator, all of them `async`:

    def register(server: TwinlensServer, services: Services) -> None:
        @services.contribute.hover
        async def hover(document: Document, position: types.Position) -> str | None: ...   # Markdown

        @services.contribute.code_lenses
        async def lenses(document: Document) -> Sequence[types.CodeLens]: ...              # command: a client command

        @services.contribute.code_actions
        async def actions(document: Document, params: types.CodeActionParams) -> Sequence[types.CodeAction]: ...

        @services.contribute.diagnostics
        async def diagnostics(document: Document) -> Sequence[types.Diagnostic]: ...          # pulled by the client

        @services.contribute.start             # after `initialized`, with the settings read; `stop` at the end
        async def start() -> None: ...

        @services.contribute.files_changed     # Python files of the workspace, changed on disk, or folders come or gone
        async def changed(paths: Sequence[Path]) -> None: ...

        @server.feature(protocol.MY_REQUEST)   # requests of our own: types in protocol.py, mirrored in protocol.ts
        async def answer(params: protocol.MyParams) -> protocol.MyResult: ...

- A contributor that raises is logged with its traceback and answers nothing; the others' answers stand. What a person
  should read is a request's `raise Refused("One sentence.")` (jsonrpc.py).
- Parse with `await services.documents.parse(document, function)` (`read` where the function needs the path too): once
  a version, in a thread, the last version that parsed while the text does not. `keep_read(function)` in `register` has
  each version read without being asked, `read_parts(function)` reads what parses of a document that never did as a
  whole. Other work of more than some
  milliseconds goes through `asyncio.to_thread`.
- Columns of `ast` become the client's by `document.lines` (positions.py).
- When an answer would be another although the text is the same, call `services.editor.refresh_lenses()` or
  `refresh_diagnostics()`.
- Settings: a field in settings.py, the same in package.json; read `services.settings.current` when answering.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from lsprotocol import types

from twinlens.lsp.documents import Document

T = TypeVar("T")
HoverContributor = TypeVar("HoverContributor", bound=Callable[[Document, types.Position], Awaitable[str | None]])
LensContributor = TypeVar("LensContributor", bound=Callable[[Document], Awaitable[Sequence[types.CodeLens]]])
ActionContributor = TypeVar(
    "ActionContributor", bound=Callable[[Document, types.CodeActionParams], Awaitable[Sequence[types.CodeAction]]]
)
DiagnosticContributor = TypeVar(
    "DiagnosticContributor", bound=Callable[[Document], Awaitable[Sequence[types.Diagnostic]]]
)
LifeContributor = TypeVar("LifeContributor", bound=Callable[[], Awaitable[None]])
FilesContributor = TypeVar("FilesContributor", bound=Callable[[Sequence[Path]], Awaitable[None]])

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Contributions:
    """The contributors, in the order of registration."""

    to_hover: list[Callable[[Document, types.Position], Awaitable[str | None]]] = field(default_factory=list)
    to_code_lenses: list[Callable[[Document], Awaitable[Sequence[types.CodeLens]]]] = field(default_factory=list)
    to_code_actions: list[Callable[[Document, types.CodeActionParams], Awaitable[Sequence[types.CodeAction]]]] = field(
        default_factory=list
    )
    to_diagnostics: list[Callable[[Document], Awaitable[Sequence[types.Diagnostic]]]] = field(default_factory=list)
    to_start: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    to_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    to_files_changed: list[Callable[[Sequence[Path]], Awaitable[None]]] = field(default_factory=list)

    def hover(self, contributor: HoverContributor) -> HoverContributor:
        """Adds Markdown to the hover at a position."""
        self.to_hover.append(contributor)
        return contributor

    def code_lenses(self, contributor: LensContributor) -> LensContributor:
        """Adds lenses to a document, each with its command: one that the client registered."""
        self.to_code_lenses.append(contributor)
        return contributor

    def code_actions(self, contributor: ActionContributor) -> ActionContributor:
        """Adds code actions for a range of a document."""
        self.to_code_actions.append(contributor)
        return contributor

    def diagnostics(self, contributor: DiagnosticContributor) -> DiagnosticContributor:
        """Adds diagnostics to a document."""
        self.to_diagnostics.append(contributor)
        return contributor

    def start(self, contributor: LifeContributor) -> LifeContributor:
        """Runs once the client is ready and the settings are read."""
        self.to_start.append(contributor)
        return contributor

    def stop(self, contributor: LifeContributor) -> LifeContributor:
        """Runs before the server ends, also when the client vanished: ends the processes that the feature started."""
        self.to_stop.append(contributor)
        return contributor

    def files_changed(self, contributor: FilesContributor) -> FilesContributor:
        """Runs when Python files of the workspace were made, changed or deleted on disk.

        Of a folder that was made, moved or deleted the path may be its own alone; it may also be another file's without
        an extension.
        """
        self.to_files_changed.append(contributor)
        return contributor


async def answers(contributors: Iterable[Callable[..., Awaitable[T]]], *arguments: object) -> list[T]:
    """What the contributors answer, asked at the same time; one that raises is logged and left out."""
    asked = list(contributors)
    results = await asyncio.gather(*(contributor(*arguments) for contributor in asked), return_exceptions=True)
    good: list[T] = []
    for contributor, result in zip(asked, results, strict=True):
        if isinstance(result, BaseException):
            logger.error("The contributor %r failed", contributor, exc_info=result)
        else:
            good.append(result)
    return good
