"""The transformers checkouts that the editor looks into, each scanned in a thread and kept up with what is typed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from twinlens.lsp.documents import Document, Documents
from twinlens.lsp.parsing import ONE_AT_A_TIME
from twinlens.lsp.protocol import InitializationOptions
from twinlens.lsp.settings import Live
from twinlens.skips.notices import ScanError
from twinlens.skips.scan import Linked
from twinlens.skips.watch import Watch, find_checkout, is_checkout

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InCheckout:
    """A scan as it is now, and the path in it that was asked about."""

    linked: Linked
    path: str


class Checkouts:
    """Every checkout that a document or the workspace lies in.

    Effect: remembers scans below the cache folder of the session. `on_scanned` runs when a first scan is there.
    """

    def __init__(
        self,
        session: Live[InitializationOptions],
        documents: Documents,
        folders: Callable[[], Sequence[Path]],
    ) -> None:
        self._session = session
        self._documents = documents
        self._folders = folders
        self._watched: dict[Path, _Watched] = {}
        self._listeners: list[Callable[[], None]] = []

    def on_scanned(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever the first scan of a checkout has ended."""
        self._listeners.append(listener)

    async def of_document(self, document: Document) -> InCheckout | None:
        """The scan around a document, with what is typed; `None` outside of checkouts and until the first scan ends."""
        root = find_checkout(document.path) if document.path is not None else None
        if root is None or document.path is None:
            return None
        watched = self._watch(root)
        if not watched.is_scanned:
            return None
        linked = await watched.now()
        return InCheckout(linked, document.path.relative_to(root).as_posix())

    async def of_workspace(self) -> Linked | None:
        """The scan of the first checkout of the workspace, waited for; `None` where there is none.

        Raises `ScanError` where its tests can't be scanned.
        """
        root = self.root()
        return None if root is None else await self._watch(root).now()

    def root(self) -> Path | None:
        """The checkout of the workspace: one that is watched already, or around, at or right below its folders."""
        for folder in self._folders():
            around = find_checkout(folder)
            if around is not None:
                return around
            below = next((inner for inner in sorted(folder.iterdir()) if is_checkout(inner)), None)
            if below is not None:
                return below
        return next(iter(self._watched), None)

    async def start(self) -> None:
        """Begins to scan the checkout of the workspace."""
        root = self.root()
        if root is not None:
            self._watch(root)

    async def changed_on_disk(self, paths: Sequence[Path]) -> bool:
        """Takes up files that changed outside of the editor; tells if answers may differ now."""
        return any([await watched.changed_on_disk(paths) for watched in self._watched.values()])

    def _watch(self, root: Path) -> _Watched:
        if root not in self._watched:
            watched = self._watched[root] = _Watched(
                Watch(root, self._cache(), ONE_AT_A_TIME), lambda: self._typed(root)
            )
            watched.begin(self._tell)
        return self._watched[root]

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _typed(self, root: Path) -> dict[str, str]:
        return {
            document.path.relative_to(root).as_posix(): document.text
            for document in self._documents.open()
            if document.path is not None and document.path.is_relative_to(root) and document.path.suffix == ".py"
        }

    def _cache(self) -> Path:
        named = self._session.current.cache_dir
        return (Path(named) if named else _default_cache()) / "skips"


class _Watched:
    """One checkout: whatever is asked of it happens in a thread, one after another."""

    def __init__(self, watch: Watch, typed: Callable[[], dict[str, str]]) -> None:
        self._watch = watch
        self._typed = typed
        self._turn = asyncio.Lock()
        self._first: asyncio.Task[None] | None = None

    @property
    def is_scanned(self) -> bool:
        return self._watch.linked is not None

    def begin(self, then: Callable[[], None]) -> None:
        async def scan() -> None:
            try:
                await self.now()
            except (ScanError, OSError) as error:
                logger.warning("%s", error)
            then()

        self._first = asyncio.create_task(scan())

    async def now(self) -> Linked:
        # The texts are those of the turn, not of the question: whoever waited behind an older version finds it done.
        return await self._in_turn(lambda: partial(self._watch.update, self._typed()))

    async def changed_on_disk(self, paths: Sequence[Path]) -> bool:
        return await self._in_turn(lambda: partial(self._watch.changed_on_disk, paths))

    async def _in_turn(self, work: Callable[[], Callable[[], T]]) -> T:
        async def turn() -> T:
            async with self._turn:
                return await asyncio.to_thread(work())

        # A cancelled request must not let the next one in while its thread still works on the scan.
        return await asyncio.shield(asyncio.create_task(turn()))


def _default_cache() -> Path:
    """For clients that name no folder; without platformdirs, which is not among the server's packages."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twinlens"
