"""Files that a command writes."""

from __future__ import annotations

from pathlib import Path

from twinlens.cli.errors import UserError


def write(path: Path, text: str) -> None:
    """Write a file and the folders around it, in one step. Raises `UserError` where it cannot be written."""
    from twinlens.skips.storage import write_beside

    try:
        write_beside(path, text)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
