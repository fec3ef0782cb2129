"""Judge every module of the port alone, on what the reference's was given: stacked faults are all found in one go."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from twinlens.diffing.diff import Diff, Options, Progress, diff_traces
from twinlens.diffing.feeding import FedCall, Feeding, key_of
from twinlens.diffing.load import LoadedTrace, load_trace
from twinlens.diffing.substitutes import input_feeds, output_feeds
from twinlens.tracing.job import Failed, Job, from_line
from twinlens.tracing.record import RECORD_FILE, TraceError


def replay(
    reference: Path,
    port: Path,
    recipes: tuple[str, str],
    options: Options,
    *,
    interpreter: str,
    root: Path,
    on_progress: Progress | None = None,
) -> Diff:
    """The diff of the reference with the port replayed. A trace that is not there yet is made from its recipe first.

    `interpreter` is the Python that has the models; `root` the folder that recipes are named from.

    Raises:
        TraceError: a trace cannot be read, a recipe does not run, or the port raises on the reference's inputs.
    """
    tell = on_progress or (lambda _stage: None)
    for folder, recipe in zip((reference, port), recipes, strict=True):
        if not folder.exists():
            tell(f"tracing {recipe}")
            trace_recipe(folder, recipe, interpreter, root)
    ours = load_trace(reference)
    if not (_folder(reference) / RECORD_FILE).exists():
        raise TraceError(f"{reference} is no trace of Twinlens' own; a replay needs the reference's recorded inputs.")
    first = diff_traces(ours, load_trace(port), options, on_progress)
    with _replayed(ours, first, recipes[1], interpreter, root, tell) as replayed:
        return diff_traces(ours, replayed, replace(options, is_replay=True), on_progress)


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


@contextmanager
def _replayed(
    ours: LoadedTrace, first: Diff, recipe: str, interpreter: str, root: Path, tell: Progress
) -> Generator[LoadedTrace]:
    """The trace of the replay. Its files are gone once this is left; what was mapped stays readable."""
    with tempfile.TemporaryDirectory(prefix="twinlens-replay-") as folder:
        feeding = Feeding(
            reference=str(_folder(ours.path).resolve()),
            target=recipe,
            root=str(root),
            folder=folder,
            calls=fed_calls(first),
        )
        tell("running the port on the reference's inputs")
        _run(interpreter, feeding, root)
        loaded = load_trace(Path(folder))
        yield replace(loaded, path=first.port.loaded.path)


def fed_calls(diff: Diff) -> dict[str, FedCall]:
    """By the port's call: the reference's tensors for it."""
    comparison = diff.judge.comparison
    found: dict[str, FedCall] = {}
    for item in diff.calls:
        for place, index in enumerate(item.port):
            call = diff.port.trace.calls[index]
            if not call.is_function:
                outputs = tuple(output_feeds(comparison, item, place))
                found[key_of(call.path, call.forward, call.number)] = FedCall(tuple(input_feeds(item)), outputs)
    return found


def trace_recipe(folder: Path, recipe: str, interpreter: str, root: Path) -> None:
    """Trace `recipe` into `folder`. Raises `TraceError`."""
    job = Job(target=recipe, root=str(root), folder=str(folder.resolve()))
    lines = _piped([interpreter, "-m", "twinlens.tracing.run"], job.to_json(), root).splitlines()
    for line in lines:
        frame = from_line(line)
        if isinstance(frame, Failed):
            raise TraceError(f"{recipe} cannot be traced: {frame.message}")


def _run(interpreter: str, feeding: Feeding, root: Path) -> None:
    problem = _piped([interpreter, "-m", "twinlens.diffing.replaying"], feeding.to_json(), root).strip()
    if problem:
        raise TraceError(problem if problem.endswith(".") else f"{problem}.")


def _piped(command: list[str], line: str, root: Path) -> str:
    """Run `command` with `line` on its standard input, which stays open until it ends; its standard output."""
    from twinlens.tracing.process import child_environment

    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=root,
            env=child_environment(),
            text=True,
            start_new_session=True,  # Ctrl-C is for us: with our end of its standard input it ends without a word
        )
    except OSError as error:
        raise TraceError(f"{command[0]} cannot be run ({error.strerror}); choose another interpreter.") from error
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            output = process.stdout.read()
        except BrokenPipeError:
            output = ""
        process.wait()  # with its standard input still open: when that ends, it ends at once
    if process.returncode:
        raise TraceError(f"{' '.join(command[1:3])} ended with code {process.returncode}; its output says more.")
    return output
