"""Lint one text with transformers-mlinter, in the interpreter that has it: `python -m twinlens.checks.mlinter PATH`.

Reads the text from standard input and prints a JSON list of `line`, `code` and `message`. Exits with 3 where mlinter is
not installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

NOT_INSTALLED = 3


def main(arguments: Sequence[str]) -> int:
    """Lint standard input as the file that the one argument names."""
    if find_spec("mlinter") is None:
        return NOT_INSTALLED
    text = sys.stdin.buffer.read().decode("utf-8")
    try:
        found = import_module("mlinter").analyze_file(Path(arguments[0]), text)
    except SyntaxError:
        found = []
    plain = [{"line": one.line_number, "code": one.rule_id or "", "message": one.message} for one in found]
    sys.stdout.write(json.dumps(plain))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
