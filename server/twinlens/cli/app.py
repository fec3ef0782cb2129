"""The table of commands."""

from __future__ import annotations

import typer

from twinlens.cli.check import check
from twinlens.cli.detect import detect
from twinlens.cli.diff import diff
from twinlens.cli.skips import scan_skips
from twinlens.cli.trace import trace

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Twinlens, for people who port a model.")


@app.callback()
def twinlens() -> None:
    """Twinlens, for people who port a model."""


app.command()(check)
app.command()(detect)
app.command()(diff)
app.command()(scan_skips)
app.command()(trace)
