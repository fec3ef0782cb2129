"""What goes wrong before a forward runs, and whose affair it is."""

from __future__ import annotations

from pathlib import Path

RAISED = (Exception, SystemExit)
"""What code of the user's raises of its own accord: `sys.exit()` in it does not end Python without a word. A
`KeyboardInterrupt` is whoever waits for it."""


class UsageError(ValueError):
    """Something that the user asked for cannot be done: one sentence that names the file and the remedy."""


class NoRecipeError(UsageError):
    """No way was found to make the class's model and inputs: a recipe is needed, of which a template can be opened."""


class UserCodeError(Exception):
    """Code of the user's raised while `doing` (`importing modeling_x.py`); the exception itself is the cause."""

    def __init__(self, doing: str) -> None:
        super().__init__(doing)
        self.doing = doing


class StoppedError(KeyboardInterrupt):
    """The forward was interrupted: `folder` holds its trace up to there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder
