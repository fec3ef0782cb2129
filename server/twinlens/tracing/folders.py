"""Where traces and recipes lie in a workspace. Standard library only."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from twinlens.tracing.record import RECORD_FILE, TraceError

TRACES_FOLDER = Path(".twinlens") / "traces"
RECIPES_FOLDER = Path(".twinlens") / "recipes"


def new_trace_folder(root: Path, name: str, asked: Path | None) -> Path:
    """A new, empty folder: `asked`, or one in `.twinlens/traces` of `root` named by `name` and the time.

    A folder that holds a trace already is left as it is, and a number added to the new one's name.

    Raises:
        TraceError: it cannot be made.
    """
    wanted = asked or root / TRACES_FOLDER / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    folder = wanted
    number = 2
    try:
        while (folder / RECORD_FILE).exists():
            folder = wanted.with_name(f"{wanted.name}-{number}")
            number += 1
        folder.mkdir(parents=True, exist_ok=True)
        if asked is None:
            _ignore_in_git(root / TRACES_FOLDER)
    except OSError as error:
        raise TraceError(f"{folder} cannot be made ({error.strerror}); choose another folder for the trace.") from error
    return folder


def nearest_recipes(start: Path) -> list[Path]:
    """The recipe files of `start`, or of the nearest folder above it that has any."""
    for folder in (start, *start.parents):
        found = sorted((folder / RECIPES_FOLDER).glob("*.py"))
        if found:
            return found
    return []


def _ignore_in_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
