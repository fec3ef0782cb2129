"""How a command ends early: its user can mend something, or interrupted it."""

from __future__ import annotations


class UserError(Exception):
    """A mistake of the user's: its text is one sentence that names the file and the remedy."""


class Interrupted(Exception):  # noqa: N818  # it is no error
    """Ctrl-C, where there is something to say: its text tells what is left."""
