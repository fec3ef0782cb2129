"""A child process that speaks one JSON object a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

_LINE_LIMIT = 64 * 1024 * 1024
_KEPT_OF_STDERR = 20

log = logging.getLogger(__name__)


class ProcessEndedError(Exception):
    """The process could not be started or ended before it answered: one sentence."""


class CallError(Exception):
    """The process answered a call with an error: one sentence."""


class LineProcess:
    """One child; its standard error is logged, and its last lines are kept for the sentence that says why it ended."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self._process = process
        self._name = name
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._stderr: list[str] = []
        self._reading: asyncio.Task[None] | None = None
        self._errors = asyncio.ensure_future(self._keep_stderr())
        self.killed = False

    @classmethod
    async def start(cls, command: Sequence[str], python_path: str, name: str = "similarity process") -> LineProcess:
        """`name` is what a person reads where it ends. Raises `OSError` where the program cannot be started."""
        environment = {**os.environ, "PYTHONPATH": python_path, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            limit=_LINE_LIMIT,
            # A group of its own, so that killing it ends the processes that it has started as well.
            start_new_session=sys.platform != "win32",
        )
        return cls(process, name)

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of one request. Raises `CallError` or `ProcessEndedError`."""
        if not self.running or self._process.stdin is None:
            raise ProcessEndedError(self._ended())
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_replies())
        self._last_id += 1
        call_id = self._last_id  # not to be read again below, where a later call may have counted on
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[call_id] = reply
        line = json.dumps({"id": call_id, "method": method, "params": params}) + "\n"
        try:
            self._process.stdin.write(line.encode())
            await self._process.stdin.drain()
            # Where the reading has ended before, nobody would ever answer.
            await asyncio.wait([reply, self._reading], return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                raise ProcessEndedError(self._ended())
            return reply.result()
        except (BrokenPipeError, ConnectionResetError) as error:
            await self._process.wait()
            await self._errors
            raise ProcessEndedError(self._ended()) from error
        finally:
            self._pending.pop(call_id, None)

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        """What the process writes, until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            yield json.loads(line)
        await self._process.wait()
        await self._errors

    def problem(self) -> str | None:
        """Why the process ended, where it did not end well."""
        return self._ended() if self._process.returncode else None

    async def kill(self) -> None:
        """End the process and those that it has started, at once."""
        self.killed = True
        with contextlib.suppress(ProcessLookupError):
            if sys.platform != "win32":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        await self._process.wait()

    async def _read_replies(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            reply = self._pending.get(answer["id"])
            if reply is None or reply.done():
                continue  # whoever asked has been cancelled
            if "error" in answer:
                reply.set_exception(CallError(answer["error"]))
            else:
                reply.set_result(answer["result"])
        await self._process.wait()
        await self._errors
        for reply in self._pending.values():
            if not reply.done():
                reply.set_exception(ProcessEndedError(self._ended()))

    async def _keep_stderr(self) -> None:
        assert self._process.stderr is not None
        async for raw in self._process.stderr:
            line = raw.decode(errors="replace").rstrip()
            log.info("%s", line)
            self._stderr = [*self._stderr, line][-_KEPT_OF_STDERR:]

    def _ended(self) -> str:
        last = next((line for line in reversed(self._stderr) if line.strip()), "")
        return f"The {self._name} ended with code {self._process.returncode}{': ' + last if last else ''}."
