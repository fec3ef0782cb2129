"""The similarity index as the server sees it: a worker process to ask, a build process to wait for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from twinlens.similarity.answers import Answer, QueryFile
from twinlens.similarity.inheritance import InheritRequest, ModularText, modular_text, question_of
from twinlens.similarity.processes import CallError, LineProcess, ProcessEndedError
from twinlens.similarity.programs import SimilaritySettings, start_builder, start_worker
from twinlens.similarity.status import IndexStatus, building, ready
from twinlens.similarity.wire import answers_from_json, query_to_json
from twinlens.source.library import Library

_QUIET_SECONDS = 5.0
"""How long no library file is saved before the index on disk follows the one in memory."""
_MANY = 40
"""From so many changed files on, as when a branch is checked out, the index is brought up to date as a whole."""

log = logging.getLogger(__name__)


class SearchUnavailableError(Exception):
    """There is nothing to search: the text is one sentence that says why and what helps."""


class SimilarityService:
    """Owns the two processes. All methods belong to one event loop."""

    def __init__(self, settings: SimilaritySettings, on_status: Callable[[IndexStatus], None]) -> None:
        self.status = IndexStatus("starting", message="Looking for the library.")
        self._settings = settings
        self._on_status = on_status
        self._worker: LineProcess | None = None
        self._builder: LineProcess | None = None
        self._library: Library | None = None
        self._missing: tuple[str, ...] = ()
        self._life = asyncio.Lock()
        self._reviving: asyncio.Future[None] | None = None
        self._following: asyncio.Future[None] | None = None

    @property
    def library(self) -> Library | None:
        """The library that is searched; None until it is found."""
        return self._library

    async def start(self) -> None:
        """Find the library, load its index, and build it where there is none or it is out of date."""
        async with self._life:
            try:
                await self._start_worker()
                if self._library is not None and await self._open() != "current":
                    await self._build(afresh=False)
            except (CallError, ProcessEndedError, SearchUnavailableError) as error:
                self._set(IndexStatus("failed", library=self._label, message=str(error)))

    async def rebuild(self) -> None:
        """Build the index anew, reusing nothing; the old one answers until the new one is whole."""
        async with self._life:
            try:
                if self._worker is None or not self._worker.running:
                    await self._start_worker()
                if self._library is not None:
                    await self._build(afresh=True)
            except (CallError, ProcessEndedError, SearchUnavailableError) as error:
                self._set(IndexStatus("failed", library=self._label, message=str(error)))

    async def stop(self) -> None:
        """End both processes; a build that is under way leaves the old index as it was."""
        if self._following is not None:
            self._following.cancel()
        for process in (self._builder, self._worker):
            if process is not None:
                await process.kill()
        self._set(IndexStatus("stopped", message="The similarity index is stopped."))

    async def search(self, query: QueryFile, names: Sequence[str], top_k: int = 5) -> list[Answer]:
        """One answer for each of `names`, definitions of `query`. Raises `SearchUnavailableError`."""
        if self._worker is None or not self.status.definitions:
            raise SearchUnavailableError(self.status.message)
        try:
            raw = await self._worker.call(
                "search", {"query": query_to_json(query), "names": list(names), "top_k": top_k}
            )
        except ProcessEndedError as error:
            self._revive()
            raise SearchUnavailableError(f"{error} It is being started again.") from error
        except CallError as error:
            raise SearchUnavailableError(str(error)) from error
        return answers_from_json(raw)

    async def update(self, paths: Sequence[Path]) -> None:
        """Take in the library files among `paths`, which were made, changed or deleted. Raises
        `SearchUnavailableError`.
        """
        inside = [str(path) for path in paths if any(path.resolve().is_relative_to(root) for root in self._roots)]
        if not inside or self._worker is None or not self.status.definitions:
            return
        if len(inside) >= _MANY:
            await self._bring_up_to_date()
            return
        try:
            answer = await self._worker.call("update", {"paths": inside})
        except (CallError, ProcessEndedError) as error:
            raise SearchUnavailableError(str(error)) from error
        if answer["changed"]:
            updates = self.status.updates + answer["changed"]
            state = self.status.state
            found = self.status if state == "building" else self._ready(answer["definitions"], state == "ready")
            self._set(replace(found, updates=updates))
            self._follow_on_disk()

    async def _bring_up_to_date(self) -> None:
        async with self._life:
            try:
                await self._build(afresh=False)
            except (CallError, ProcessEndedError, SearchUnavailableError) as error:
                self._set(IndexStatus("failed", library=self._label, message=str(error)))

    def _follow_on_disk(self) -> None:
        if self._following is not None:
            self._following.cancel()
        self._following = asyncio.ensure_future(self._write_when_quiet())

    async def _write_when_quiet(self) -> None:
        """Have the index on disk hold what the worker answers by; a process of its own reads and writes it."""
        await asyncio.sleep(_QUIET_SECONDS)
        async with self._life:
            try:
                await self._run_builder(afresh=False, on_line=_nothing)
            except (OSError, SearchUnavailableError) as error:
                # The answers are right all the same, and the next start builds what is missing.
                log.warning("The index on disk could not follow: %s", error)

    async def inherit(self, request: InheritRequest) -> ModularText:
        """The modular file with the class as a subclass of the match. Raises `SearchUnavailableError`."""
        if self._worker is None:
            raise SearchUnavailableError(self.status.message)
        try:
            return modular_text(await self._worker.call("inherit", question_of(request, self._roots)))
        except (CallError, ProcessEndedError) as error:
            raise SearchUnavailableError(str(error)) from error

    def _revive(self) -> None:
        """Starts anew what had answered before; what fails while it starts is not tried again by itself."""
        if not self._life.locked():
            self._reviving = asyncio.ensure_future(self.start())

    async def _start_worker(self) -> None:
        interpreter = self._settings.interpreter
        self._set(IndexStatus("starting", message="Looking for the library."))
        try:
            self._worker = await start_worker(self._settings)
        except OSError as error:
            raise ProcessEndedError(
                f"The Python interpreter {interpreter} cannot be started ({error.strerror}); choose another one in the "
                "setting twinlens.interpreter."
            ) from error
        found = await self._worker.call("probe", self._question())
        self._missing = tuple(found["missing"])
        if found["library"] is None:
            self._library = None
            raise SearchUnavailableError(
                f"No library to compare with: {interpreter} has no transformers, and the workspace is no transformers "
                "checkout. Install transformers there, or name folders in the setting twinlens.library."
            )
        roots, origin, version = found["library"]
        self._library = Library(tuple(map(Path, roots)), origin, version)

    async def _open(self) -> Literal["current", "outdated", "damaged"]:
        """Load what is on disk. A damaged or missing index is one to build."""
        assert self._worker is not None
        try:
            opened = await self._worker.call("open", self._question())
        except CallError as error:
            self._set(replace(self.status, message=str(error)))
            return "damaged"
        self._set(self._ready(opened["definitions"], embeddings=opened["embeddings"]))
        return "current" if opened["current"] else "outdated"

    def _ready(self, definitions: int, embeddings: bool) -> IndexStatus:
        return ready(definitions, self._label, embeddings, self._missing, self._settings.interpreter)

    async def _build(self, afresh: bool) -> None:
        before = self.status
        self._set(replace(self.status, state="building", percent=0, message="Building the similarity index (0 %)."))
        try:
            await self._run_builder(afresh, self._build_progress)
        except asyncio.CancelledError:
            self._set(before)
            raise
        if self._builder is None or self._builder.killed:
            return
        opened = await self._open()
        if opened == "damaged":
            raise SearchUnavailableError(f"The similarity index could not be loaded: {self.status.message}")
        if opened == "outdated":  # a file was saved while the index was built
            assert self._worker is not None
            await self._worker.call("update", {"paths": None})
            self._follow_on_disk()

    async def _run_builder(self, afresh: bool, on_line: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Bring the index on disk up to date in a process of its own. Raises `SearchUnavailableError`."""
        assert self._library is not None
        self._builder = await start_builder(self._settings, self._library, afresh)
        try:
            async for line in self._builder.lines():
                if "error" in line:
                    raise SearchUnavailableError(line["error"])
                await on_line(line)
        except asyncio.CancelledError:
            await self._builder.kill()
            raise
        problem = None if self._builder.killed else self._builder.problem()
        if problem:
            raise SearchUnavailableError(f"The similarity index could not be built: {problem}")

    async def _build_progress(self, line: dict[str, Any]) -> None:
        if "stage" not in line:
            return
        if line["stage"] == "tokens":
            await self._open()
        self._set(building(self.status, line["stage"], line["percent"]))

    def _question(self) -> dict[str, Any]:
        return {
            "near": list(self._settings.workspace),
            "folders": list(self._settings.library),
            "index": str(self._settings.index_of(self._library)) if self._library else "",
            "embedder": self._settings.embedder_name,
        }

    @property
    def _roots(self) -> tuple[Path, ...]:
        return self._library.roots if self._library else ()

    @property
    def _label(self) -> str | None:
        return self._library.label if self._library else None

    def _set(self, status: IndexStatus) -> None:
        self.status = status
        self._on_status(status)


async def _nothing(_: dict[str, Any]) -> None:
    """The index on disk follows without a word."""
