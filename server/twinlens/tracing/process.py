"""Run a job in a process of the user's interpreter, which can be ended at any moment. Standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from twinlens.tracing.job import Failed, Job, Outcome, Progress, from_line

_SECONDS_TO_END = 1.0
_LONGEST_LINE = 1 << 24


async def run_job(
    python: str, job: Job, on_progress: Callable[[Progress], None], on_output: Callable[[str], None]
) -> Outcome:
    """Trace in a process of `python`; what the model prints goes to `on_output` line by line.

    Cancelling ends the process: it is interrupted, so that it can finish its record, and killed a second later.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            python,
            "-m",
            "twinlens.tracing.run",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=job.root,
            env=child_environment(),
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
    except OSError as error:
        return Failed("mistake", f"{python} cannot be run ({error.strerror}); choose another interpreter.")
    printed = asyncio.create_task(_read_output(process, on_output))
    try:
        outcome = await _converse(process, job, on_progress)
        await process.wait()
        await printed
    finally:
        await _end(process)
        printed.cancel()
    return outcome or Failed("raised", _how_it_ended(process.returncode))


async def _converse(
    process: asyncio.subprocess.Process, job: Job, on_progress: Callable[[Progress], None]
) -> Outcome | None:
    """Send the job and read frames to the end; the outcome among them, if there was one."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):
        process.stdin.write(f"{job.to_json()}\n".encode())
        await process.stdin.drain()
    outcome: Outcome | None = None
    async for line in process.stdout:
        frame = from_line(line.decode())
        if isinstance(frame, Progress):
            on_progress(frame)
        else:
            outcome = frame
    return outcome


async def _read_output(process: asyncio.subprocess.Process, on_output: Callable[[str], None]) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(1 << 16):
        on_output(chunk.decode(errors="replace"))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    _signal(process, signal.SIGINT)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.shield(process.wait()), _SECONDS_TO_END)
    if process.returncode is None:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """To the process and those that it started: it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def child_environment() -> dict[str, str]:
    """For a process of the user's interpreter: it finds our package, and nothing else that is ours."""
    package = Path(__file__).parent.parent.parent
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**environment, "PYTHONPATH": str(package), "PYTHONUTF8": "1"}


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = ", often for lack of memory" if name == "SIGKILL" else ""
        return f"The process that traces was ended by {name}{hint}."
    return f"The process that traces ended with code {code} before the forward ran; its output says more."
