"""`twinlens trace`: run one forward and record every module's inputs and outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twinlens.cli.errors import Interrupted, UserError

if TYPE_CHECKING:
    from twinlens.tracing.job import Progress


def trace(
    target: Annotated[
        str, typer.Argument(help="file.py::Class, module:Class, file.py::recipe_function, or a recipe's name.")
    ],
    output_dir: Annotated[
        Path | None,
        typer.Option(
            "--output-dir", "--output_dir", help="The trace's folder; by default a new one in .twinlens/traces."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=-(2**63), max=2**63 - 1, help="Seed of the weights and inputs; the recipe's if not given."),
    ] = None,
    dtype: Annotated[str, typer.Option(help="Run in this floating dtype: bfloat16, float64 …")] = "",
    device: Annotated[str, typer.Option(help="Run on this device: cpu, cuda:0 …")] = "",
    stats_only: Annotated[bool, typer.Option("--stats-only", help="Keep statistics, no values.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="CLASS_OR_PATH",
            help="Keep values of these modules and what they call only: class or path, with * and ?. Repeatable.",
        ),
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option("--max-bytes", help="Keep no more values than this: 500M, 4G …")
    ] = None,
) -> None:
    """Run one forward of a class or recipe and record every module's inputs and outputs.

    Prints the trace's folder. Exit code 1 when the model raised: its trace is kept up to there.
    """
    from twinlens.tracing.job import Failed, Job
    from twinlens.tracing.run import execute, own_standard_output

    job = Job(
        target=target,
        root=str(Path.cwd()),
        folder=str(output_dir) if output_dir else "",
        seed=seed,
        dtype=dtype,
        device=device,
        stats_only=stats_only,
        only=tuple(only or ()),
        max_bytes=_bytes(max_bytes) if max_bytes else None,
    )
    output = own_standard_output()
    try:
        outcome = execute(job, _reporter())
    except KeyboardInterrupt as interrupt:
        raise Interrupted(_what_is_left(interrupt)) from None
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    if isinstance(outcome, Failed):
        if outcome.traceback:
            sys.stderr.write(f"{outcome.traceback}\n")
        raise UserError(outcome.message)
    output.write(f"{outcome.folder}\n")
    output.flush()
    if outcome.error:
        sys.stderr.write(f"{outcome.traceback}\ntwinlens: the forward raised {outcome.error}\n")
        raise SystemExit(1)


def _what_is_left(interrupt: KeyboardInterrupt) -> str:
    from twinlens.tracing.record import RECORD_FILE

    folder: Path | None = getattr(interrupt, "folder", None)  # its class is not known before torch is imported
    if folder is None or not (folder / RECORD_FILE).is_file():
        return "there is no trace, since the forward had not begun"
    return f"the trace is kept up to there in {folder}"


def _bytes(text: str) -> int:
    units = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in units else (text, "")
    try:
        size = int(float(number) * units.get(unit, 1))
    except (ValueError, OverflowError):
        size = -1
    if size < 0:
        raise UserError(f"--max-bytes {text} is no size; write a number of bytes, or one with K, M, G or T, as 500M")
    return size


def _reporter() -> Callable[[Progress], None]:
    """One line on a terminal that is written over; elsewhere a line a stage."""
    on_terminal = sys.stderr.isatty()
    stages: set[str] = set()

    def report(progress: Progress) -> None:
        if progress.stage == "preparing":
            sys.stderr.write(f"{progress.detail}\n")
        elif on_terminal:
            sys.stderr.write(f"\r\x1b[K{progress.count} {progress.detail}")
        elif progress.stage not in stages:
            sys.stderr.write("running the forward\n")
        stages.add(progress.stage)
        sys.stderr.flush()

    return report
