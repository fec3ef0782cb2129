"""The similarity index for the settings as they are now: one service at a time, replaced when they change."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from twinlens.lsp.protocol import InitializationOptions
from twinlens.lsp.settings import Live, Settings
from twinlens.similarity.programs import SimilaritySettings
from twinlens.similarity.service import SimilarityService
from twinlens.similarity.status import IndexStatus


class LibraryIndex:
    """Owns the similarity service, and with it the worker and build processes."""

    def __init__(
        self,
        session: Live[InitializationOptions],
        settings: Live[Settings],
        folders: Callable[[], Sequence[Path]],
    ) -> None:
        self._session = session
        self._settings = settings
        self._folders = folders
        self._service: SimilarityService | None = None
        self._used: SimilaritySettings | None = None
        self._changing = asyncio.Lock()
        self.status = Live(IndexStatus("stopped"))

    @property
    def service(self) -> SimilarityService | None:
        """The service to ask; None before `start` and after `stop`."""
        return self._service

    async def start(self) -> None:
        """Starts a service for the settings of now, unless the one that runs was made for the same.

        Returns when the index is loaded, and built where there was none.
        """
        async with self._changing:
            wanted = self._wanted()
            if wanted == self._used:
                return
            await self._end()
            self._used = wanted
            service = self._service = SimilarityService(wanted, self.status.set)
        await service.start()

    async def stop(self) -> None:
        """Ends the processes."""
        async with self._changing:
            await self._end()

    async def _end(self) -> None:
        service, self._service, self._used = self._service, None, None
        if service is not None:
            await service.stop()

    def _wanted(self) -> SimilaritySettings:
        session, settings = self._session.current, self._settings.current
        return SimilaritySettings(
            interpreter=session.interpreter or sys.executable,
            library=settings.library,
            workspace=tuple(map(str, self._folders())),
            cache_dir=session.cache_dir or str(_default_cache()),
            embedder=settings.embedder or None,
        )


def _default_cache() -> Path:
    """For clients that name no folder; without platformdirs, which is not among the server's packages."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twinlens"
