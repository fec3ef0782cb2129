"""The context manager records what the upstream one loses, and leaves no trace of itself on the model."""

from __future__ import annotations
