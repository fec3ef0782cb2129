"""Tracebacks cut to the code that a user knows. Standard library only."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

_OWN_FOLDER = str(Path(__file__).parent.parent)


def described(error: BaseException) -> str:
    """`Type: message`, the message's first line; of a `SystemExit`, the call that raised it."""
    if isinstance(error, SystemExit):
        return f"SystemExit: sys.exit({'' if error.code is None else repr(error.code)}) was called"
    message = str(error).strip()
    return f"{type(error).__name__}: {message.splitlines()[0]}" if message else type(error).__name__


def place_of(error: BaseException) -> str:
    """`file.py:8, in forward`: the innermost of the user's frames; empty where there is none."""
    frames = _frames(error)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name}" if frames else ""


def user_frames(error: BaseException) -> str:
    """The frames that `error` passed, outermost first, without ours, torch's and the import machinery's."""
    return "".join(traceback.format_list(_frames(error)))


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    hidden = tuple(_hidden_folders())
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(hidden) and not frame.filename.startswith("<frozen ")
    ]


def user_traceback(error: BaseException) -> str:
    """As Python prints it, of the user's frames only. A syntax error shows the line that it is about."""
    frames = user_frames(error)
    head = "Traceback (most recent call last):\n" if frames else ""
    return f"{head}{frames}{''.join(traceback.format_exception_only(error))}".rstrip()


def _hidden_folders() -> Iterator[str]:
    yield _OWN_FOLDER
    torch_file = getattr(sys.modules.get("torch"), "__file__", None)
    if torch_file:
        yield str(Path(torch_file).parent)
    yield str(Path(traceback.__file__).parent / "importlib")
