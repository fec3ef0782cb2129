"""The `twinlens` command: the same functions as the editor's, for a terminal and for CI.

One file a command. A command imports its room inside its function, so that no command pays for another's imports.
"""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

__all__ = ["main"]

_INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command line; a user's mistake is one sentence on stderr and exit code 2, Ctrl-C one and 130."""
    try:
        _run()
    except KeyboardInterrupt:
        _end_interrupted("")
    finally:
        # What is left is Python's own end, where an interrupt would print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run() -> None:
    # Most of a short command's time goes into these imports: Ctrl-C may come in them as well.
    from twinlens.cli.app import app
    from twinlens.cli.errors import Interrupted, UserError

    try:
        app()
    except UserError as error:
        sys.stderr.write(f"twinlens: {error}\n")
        raise SystemExit(2) from None
    except Interrupted as interrupt:
        _end_interrupted(str(interrupt))


def _end_interrupted(what_is_left: str) -> NoReturn:
    begin = "\r\x1b[K" if sys.stderr.isatty() else ""
    sys.stderr.write(f"{begin}twinlens: interrupted{what_is_left and f'; {what_is_left}'}\n")
    raise SystemExit(_INTERRUPTED) from None
