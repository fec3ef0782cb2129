"""The table of commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer

from twinlens.cli.check import check
from twinlens.cli.detect import detect
from twinlens.cli.diff import diff
from twinlens.cli.errors import Interrupted
from twinlens.cli.skips import scan_skips
from twinlens.cli.trace import trace

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Twinlens, for people who port a model.")


@app.callback()
def twinlens() -> None:
    """Twinlens, for people who port a model."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with Ctrl-C handed on to `main`: typer ends by itself, each version in another way."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise Interrupted from interrupt

    return run


for command in (check, detect, diff, scan_skips, trace):
    app.command()(_interruptible(command))
