"""A plugin for pytest that writes down what became of each test, and whether it asserted anything."""

from __future__ import annotations

import functools
import json
import os
import unittest
from pathlib import Path

SEEN: dict[str, dict[str, object]] = {}
_asserted = False


def _counting(method):
    @functools.wraps(method)
    def counted(*args, **kwargs):
        global _asserted
        _asserted = True
        return method(*args, **kwargs)

    return counted


for _name in [name for name in dir(unittest.TestCase) if name.startswith("assert")]:
    setattr(unittest.TestCase, _name, _counting(getattr(unittest.TestCase, _name)))


def pytest_runtest_setup(item):
    global _asserted
    _asserted = False


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome == "skipped":
        reason = report.longrepr[2].removeprefix("Skipped: ") if report.outcome == "skipped" else ""
        SEEN[report.nodeid] = {"outcome": report.outcome, "reason": reason, "asserted": _asserted}


def pytest_sessionfinish(session):
    Path(os.environ["OBSERVED"]).write_text(json.dumps(SEEN), encoding="utf-8")
