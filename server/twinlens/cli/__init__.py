"""The `twinlens` command: the same functions as the editor's, for a terminal and for CI.

One file a command. A command imports its room inside its function, so that no command pays for another's imports.
"""

from __future__ import annotations

import sys

from twinlens.cli.app import app
from twinlens.cli.errors import UserError

__all__ = ["main"]


def main() -> None:
    """Run the command line; a user's mistake is one sentence on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        sys.stderr.write(f"twinlens: {error}\n")
        raise SystemExit(2) from None
