"""A whole scan in one file, good for as long as every file that it looked at, or looked for, is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twinlens.skips.codec import FORMAT
from twinlens.skips.collector import collector_paused
from twinlens.skips.files import Files
from twinlens.skips.memory import name_of
from twinlens.skips.notices import Notice
from twinlens.skips.results import CommonTest, ModelClass, Scan
from twinlens.skips.states import Outcome, State
from twinlens.skips.storage import read_json, write_beside


def load_snapshot(folder: Path, files: Files, model_tests: tuple[str, ...]) -> Scan | None:
    """The last scan of a checkout, if nothing that it read has changed since and its test files are still these."""
    with collector_paused():
        return _load(read_json(_path(folder, files.root)), files, model_tests)


def _load(stored: Any, files: Files, model_tests: tuple[str, ...]) -> Scan | None:
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        return None
    try:
        if tuple(stored["files"]) != model_tests:
            return None
        if any(files.digest(path) != digest for path, digest in stored["consulted"].items()):
            return None
        return _scan(files.root, stored)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def save_snapshot(folder: Path, files: Files, scan: Scan) -> None:
    """Store a scan that was just made from these files."""
    table = _Table()
    tests = list(scan.tests)
    classes = [
        [c.model, c.name, c.path, c.line, c.end_line, [table.number(c.outcomes.get(test)) for test in tests]]
        for c in scan.classes
    ]
    stored = {
        "format": FORMAT,
        "consulted": files.consulted(),
        "models": scan.models,
        "files": scan.files,
        "tests": [[t.name, t.origin, t.path, t.line, t.mixin] for t in scan.tests.values()],
        "classes": classes,
        "outcomes": table.rows,
        "notices": [[notice.path, notice.line, notice.text] for notice in scan.notices],
    }
    write_beside(_path(folder, files.root), json.dumps(stored, separators=(",", ":")))


class _Table:
    """Each outcome once, by number; what a row refers to stands above it."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._numbers: dict[Outcome, int] = {}

    def number(self, outcome: Outcome | None) -> int:
        if outcome is None:
            return -1
        known = self._numbers.get(outcome)
        if known is None:
            o = outcome
            variants = [[name, self.number(variant)] for name, variant in o.variants]
            self.rows.append([o.state.value, o.reason, o.path, o.line, o.condition, variants])
            known = self._numbers[outcome] = len(self.rows) - 1
        return known


def _scan(root: Path, stored: dict[str, Any]) -> Scan:
    outcomes: list[Outcome] = []
    for state, reason, path, line, condition, variants in stored["outcomes"]:
        told = tuple((name, outcomes[number]) for name, number in variants)
        outcomes.append(Outcome(State(state), reason, path, line, condition, told))
    tests = [CommonTest(*fields) for fields in stored["tests"]]
    names = [test.name for test in tests]
    classes = tuple(
        ModelClass(*fields, {name: outcomes[n] for name, n in zip(names, numbers, strict=True) if n >= 0})
        for *fields, numbers in stored["classes"]
    )
    return Scan(
        root=root,
        models=tuple(stored["models"]),
        files=tuple(stored["files"]),
        tests={test.name: test for test in tests},
        classes=classes,
        notices=tuple(Notice(*fields) for fields in stored["notices"]),
    )


def _path(folder: Path, root: Path) -> Path:
    return folder / f"scan-{name_of(root)}.json"
