"""The one error a command raises for what its user can mend."""

from __future__ import annotations


class UserError(Exception):
    """A mistake of the user's: its text is one sentence that names the file and the remedy."""
