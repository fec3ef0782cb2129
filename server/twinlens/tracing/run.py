"""Trace one forward: the process that the editor starts and ends, and the function that the command line calls.

Only the standard library is imported before it is known that the interpreter has torch.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from twinlens.tracing.folders import new_trace_folder
from twinlens.tracing.job import Failed, Finished, Frame, Job, Outcome, Progress, to_line
from twinlens.tracing.tracebacks import described, user_traceback

if TYPE_CHECKING:
    from twinlens.tracing.moving import Destination
    from twinlens.tracing.preparing import Ready

Report = Callable[[Progress], None]
_SECONDS_BETWEEN_REPORTS = 0.05
_INTERRUPTED = 130


def execute(job: Job, report: Report) -> Outcome:
    """Prepare the model that the job names, run its forward once and write the trace.

    Raises `StoppedError` where the forward is interrupted, and `KeyboardInterrupt` before there is a folder.
    """
    if importlib.util.find_spec("torch") is None:
        return Failed(
            "no torch",
            f"{sys.executable} has no torch, which a trace needs: run {sys.executable} -m pip install torch.",
        )
    from twinlens.tracing.errors import NoRecipeError, UsageError, UserCodeError
    from twinlens.tracing.moving import destination
    from twinlens.tracing.preparing import prepare
    from twinlens.tracing.record import TraceError

    try:
        to = destination(job.dtype, job.device)
        ready = prepare(job.target, Path(job.root), job.seed, lambda doing: report(Progress("preparing", doing)))
        return _run(job, ready, to, report)
    except NoRecipeError as error:
        return Failed("no recipe", str(error))
    except (UsageError, TraceError) as error:
        return Failed("mistake", str(error))
    except UserCodeError as error:
        cause = error.__cause__ or error
        return Failed("raised", f"{described(cause)}, when {error.doing}.", user_traceback(cause))


def _run(job: Job, ready: Ready, to: Destination, report: Report) -> Outcome:
    from twinlens.tracing.context import record
    from twinlens.tracing.errors import RAISED, StoppedError, UsageError
    from twinlens.tracing.metadata import model_info
    from twinlens.tracing.moving import moved
    from twinlens.tracing.patterns import naming_nothing
    from twinlens.tracing.recipes import seed_everything
    from twinlens.tracing.training import training_effect
    from twinlens.tracing.writer import Recording

    for pattern in naming_nothing(job.only, ready.prepared.model):
        raise UsageError(
            f"{pattern} matches no module of {type(ready.prepared.model).__name__}; "
            "name a class or a path in it, with * and ? if need be."
        )
    prepared = moved(ready.prepared, to)
    info = model_info(prepared.model, target=job.target, recipe=prepared.source, part=ready.part, seed=prepared.seed)
    name = ready.part or info.class_name
    folder = new_trace_folder(Path(job.root), name, asked=Path(job.root, job.folder) if job.folder else None)
    effect = training_effect(prepared.model)
    if effect:
        sys.stderr.write(
            f"twinlens: {info.class_name} is traced in training mode, as {prepared.source} made it ({effect}); "
            "call .eval() on the model there to trace it as it infers.\n"
        )
    recording = Recording(stats_only=job.stats_only, only=job.only, max_bytes=job.max_bytes, part=ready.part)
    try:
        seed_everything(prepared.seed)  # dropout and the like: as in any other run of the same seed
        with (
            _Latest(report) as on_progress,
            record(prepared.model, folder, info, recording, on_progress=on_progress),
        ):
            prepared.model(*prepared.args, **prepared.kwargs)
    except RAISED as error:  # whatever the model raises is what its user wants to see
        return Finished(str(folder), described(error), user_traceback(error))
    except KeyboardInterrupt as interrupt:
        raise StoppedError(folder) from interrupt
    return Finished(str(folder))


class _Latest:
    """Reports the module that runs, no oftener than a person can read, and in the end always the last one."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._latest: Progress | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Callable[[str, int], None]:
        self._thread.start()
        return self._set

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _set(self, path: str, count: int) -> None:
        self._latest = Progress("running", path, count)

    def _follow(self) -> None:
        reported: Progress | None = None
        while True:
            is_done = self._done.wait(_SECONDS_BETWEEN_REPORTS)
            latest = self._latest
            if latest is not None and latest is not reported:
                self._report(latest)
                reported = latest
            if is_done:
                return


def own_standard_output() -> TextIO:
    """Standard output for us alone: what Python and C code print from now on goes to standard error."""
    sys.stdout.flush()
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return ours


def end_with_parent() -> None:
    """Standard input for us alone: when whoever started us is gone, it ends, and so do we."""
    ours = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def wait() -> None:
        while os.read(ours, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Run the job in the first line of standard input; frames go to standard output, one a line."""
    job = Job.from_json(sys.stdin.readline())
    end_with_parent()
    output = own_standard_output()

    def write(frame: Frame) -> None:
        output.write(f"{to_line(frame)}\n")
        output.flush()

    try:
        write(execute(job, write))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
