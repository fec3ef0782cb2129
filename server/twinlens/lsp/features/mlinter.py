"""The findings of transformers-mlinter, where the interpreter has it, under its own name."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from twinlens.checks.mlinter import NOT_INSTALLED
from twinlens.lsp.documents import Document
from twinlens.lsp.services import Services

SOURCE = "mlinter"

_LINTED = re.compile(
    r"(modeling|modular|configuration|processing|image_processing|video_processing|feature_extraction|tokenization|"
    r"generation|test_tokenization)_\w*\.py"
)
_PAUSE_SECONDS = 0.3
_LONGEST_SECONDS = 20

logger = logging.getLogger(__name__)


def register(server: LanguageServer, services: Services) -> None:  # noqa: ARG001  # every feature's signature
    """Adds diagnostics."""
    linter = _Linter(services)

    @services.contribute.diagnostics
    async def diagnostics(document: Document) -> Sequence[types.Diagnostic]:
        if not services.settings.current.mlinter or not services.session.current.trusted:
            return []
        return await linter.lint(document)

    services.settings.on_change(lambda _: services.editor.refresh_diagnostics())


class _Linter:
    """Runs mlinter on a document that the person has stopped typing in.

    Effect: keeps the last findings of each document, and whether the interpreter has mlinter at all.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._found: dict[str, tuple[str, list[types.Diagnostic]]] = {}
        self._is_installed = True

    async def lint(self, document: Document) -> list[types.Diagnostic]:
        text, known = self._found.get(document.uri, (None, []))
        if not self._is_installed or document.path is None or not _LINTED.fullmatch(document.path.name):
            return []
        if text == document.text:
            return known
        await asyncio.sleep(_PAUSE_SECONDS)
        if self._services.documents.get(document.uri).text != document.text:
            return known
        found = await self._run(document, document.path)
        if found is None:
            return known
        self._found[document.uri] = (document.text, found)
        return found

    async def _run(self, document: Document, path: Path) -> list[types.Diagnostic] | None:
        interpreter = self._services.session.current.interpreter or sys.executable
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3]), "PYTHONUTF8": "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                *(interpreter, "-m", "twinlens.checks.mlinter", str(path)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            logger.warning("mlinter is not asked: %s cannot be started (%s)", interpreter, error.strerror)
            self._is_installed = False
            return None
        try:
            out, errors = await asyncio.wait_for(process.communicate(document.text.encode()), _LONGEST_SECONDS)
        except (TimeoutError, asyncio.TimeoutError):
            logger.warning("mlinter took longer than %s s on %s", _LONGEST_SECONDS, path)
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == NOT_INSTALLED:
            self._is_installed = False
            return None
        if process.returncode:
            logger.warning("mlinter failed on %s: %s", path, errors.decode("utf-8", "replace").strip()[-500:])
            return None
        return [_diagnostic(document, **finding) for finding in json.loads(out)]


def _diagnostic(document: Document, line: int, code: str, message: str) -> types.Diagnostic:
    text = document.lines.lines[line - 1] if 0 < line <= len(document.lines.lines) else ""
    indent = len(text) - len(text.lstrip())
    place = document.lines.range(line, len(text[:indent].encode()), line, len(text.rstrip().encode()))
    return types.Diagnostic(place, message, types.DiagnosticSeverity.Warning, code, source=SOURCE)
