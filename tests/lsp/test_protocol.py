"""protocol.py and protocol.ts name the same fields, and numbers that JSON lacks survive."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from twinlens.lsp.protocol import to_number

ROOT = Path(__file__).parents[2]


def test_protocol_ts_is_what_protocol_py_says():
    check = [sys.executable, "scripts/write_protocol_ts.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("value", "wire"), [(0.5, 0.5), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_a_number_that_json_lacks_is_written_by_name(value, wire):
    assert to_number(value) == wire
