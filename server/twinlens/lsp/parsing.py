"""One syntax tree at a time, in all threads of the server."""

from __future__ import annotations

import threading

ONE_AT_A_TIME = threading.Lock()
"""Held around `ast.parse`.

CPython 3.11 and the first of 3.12 count how deep a tree is in one place for all threads: two that parse at the same
time raise `SystemError: AST constructor recursion depth mismatch` (python/cpython#106905). Under the GIL waiting costs
nothing.
"""
