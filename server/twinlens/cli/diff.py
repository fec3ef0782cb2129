"""`twinlens diff`: compare two traces, and name where they part and why."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twinlens.cli.errors import UserError
from twinlens.cli.output import write

if TYPE_CHECKING:
    from twinlens.diffing.diff import Diff, Options
    from twinlens.diffing.mapfile import MapFile

_AGREE, _DIFFER = 0, 1


def diff(
    reference: Annotated[Path, typer.Argument(metavar="A", help="The reference's trace: its folder or summary file.")],
    port: Annotated[Path, typer.Argument(metavar="B", help="The port's trace.")],
    rtol: Annotated[
        float | None,
        typer.Option(help="Relative L2 error up to which tensors agree; by default the dtype's noise floor."),
    ] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute error up to which elements agree.")] = None,
    mapping: Annotated[
        Path | None, typer.Option("--map", help="Pairs of modules; .twinlens/align.toml where it exists.")
    ] = None,
    noise: Annotated[
        Path | None,
        typer.Option(help="A trace of the reference in the port's dtype: its distance from A counts as noise."),
    ] = None,
    replay: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="REFERENCE_RECIPE PORT_RECIPE",
            help="Run the port again, each of its modules on the reference's inputs, and judge each alone. A trace "
            "that is not there yet is made from its recipe.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that stands alone, for a pull request.")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="Write the diff as JSON; - for standard output.")
    ] = None,
) -> None:
    """Compare two traces: the first module that differs, and the likely cause.

    Exit code 0: they agree; 1: they differ; 2: they cannot be compared.
    """
    for option, value in (("--rtol", rtol), ("--atol", atol)):
        if value is not None and not 0 <= value < math.inf:
            raise UserError(f"{option} {value:g} is no tolerance; give a finite number from 0, such as 1e-5")
    # The collector's scans of a growing heap take a third of a large diff, and this process ends with it.
    gc.disable()
    from twinlens.diffing.diff import Options, diff_folders
    from twinlens.diffing.report import as_json, as_text, dumped
    from twinlens.tracing.record import TraceError

    try:
        options = Options(rtol=rtol, atol=atol if atol is not None else 1e-8, mapping=_mapping(mapping), noise=noise)
        found = (
            diff_folders(reference, port, options, _reporter())
            if replay is None
            else _replayed(reference, port, replay, options)
        )
        report = dumped(as_json(found)) if json_file is not None else ""
        page = _page(found) if html is not None else ""
    except TraceError as error:
        raise UserError(str(error)) from error
    finally:
        _clear_line()
    if html is not None:
        write(html, page)
    if json_file == "-":
        sys.stdout.write(report)
    else:
        sys.stdout.write(as_text(found))
        if json_file is not None:
            write(Path(json_file), report)
    if found.outcome == "not comparable":
        raise UserError(f"{reference} and {port} cannot be compared: {found.reason}")
    raise SystemExit(_AGREE if found.outcome == "agree" else _DIFFER)


def _mapping(path: Path | None) -> MapFile:
    from twinlens.diffing.mapfile import MAP_FILE, MapFile, read_map

    if path is not None:
        return read_map(path)
    return read_map(Path(MAP_FILE)) if Path(MAP_FILE).is_file() else MapFile()


def _replayed(reference: Path, port: Path, recipes: tuple[str, str], options: Options) -> Diff:
    from twinlens.diffing.replay import replay

    root = Path.cwd()
    return replay(reference, port, recipes, options, interpreter=sys.executable, root=root, on_progress=_reporter())


def _page(found: Diff) -> str:
    from twinlens.diffing.html import as_html

    return as_html(found, Path.cwd())


def _reporter() -> Callable[[str], None]:
    """The stage that is under way, on a terminal."""
    if not sys.stderr.isatty():
        return lambda _stage: None

    def report(stage: str) -> None:
        sys.stderr.write(f"\r\x1b[K{stage} …")
        sys.stderr.flush()

    return report


def _clear_line() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
