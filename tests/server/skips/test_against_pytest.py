"""What the scanner says of the sample checkout, against what pytest does with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from twinlens.skips.states import Outcome, State


@pytest.fixture(scope="module")
def observed(checkout, tmp_path_factory):
    written = tmp_path_factory.mktemp("observed") / "tests.json"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "RUN_"))},
        "OBSERVED": str(written),
        "PYTHONPATH": str(Path(__file__).parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "tests", "-q", "-p", "observe_tests", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(written.read_text(encoding="utf-8"))


def _rows(linked):
    for cls in linked.scan.classes:
        for test, outcome in cls.outcomes.items():
            if outcome.variants:
                yield from ((f"{cls.key}::{name}", variant) for name, variant in outcome.variants)
            if not outcome.variants or outcome.state is State.PHANTOM:
                yield f"{cls.key}::{test}", outcome


def _contradiction(outcome: Outcome, seen: dict[str, object] | None, gates: set[str]) -> str:
    """What pytest did that the state excludes; nothing where the two agree. A gate may come before a skip."""
    if outcome.state is State.SHADOWED:
        return "was collected" if seen is not None else ""
    if seen is None:
        return "was not collected"
    passed, asserted = seen["outcome"] == "passed", seen["asserted"]
    may_be = {
        State.RUNS: passed and asserted,
        State.CONDITIONAL: asserted or not passed,
        State.GATED: not passed,
        State.SKIPPED: not passed and seen["reason"] in (*outcome.reason.split("; or: "), "Skipped", *gates),
        State.DISABLED: not asserted,
        State.EMPTY: passed and not asserted,
        State.VACUOUS: passed and not asserted,
        State.PHANTOM: not asserted,
    }
    return "" if may_be[outcome.state] else f"did {seen}"


def test_the_scanner_agrees_with_pytest_on_every_row(linked, observed):
    rows = dict(_rows(linked))
    assert len(rows) > 300
    gates = {outcome.reason for outcome in rows.values() if outcome.state is State.GATED}
    contradictions = {
        name: (outcome.state.value, outcome.reason, told)
        for name, outcome in rows.items()
        if (told := _contradiction(outcome, observed.get(name), gates))
    }
    assert contradictions == {}


def test_pytest_collects_no_common_test_that_the_scanner_does_not_know(linked, observed):
    known = {name for name, _ in _rows(linked)}
    classes = {cls.key for cls in linked.scan.classes}
    unknown = {name for name in observed if name not in known and name.rpartition("::")[0] in classes}
    assert {name.rpartition("::")[2] for name in unknown} == {
        "test_assisted_decoding_2_other",  # a stale variant
        "test_save_and_load",  # a dead skip
        "test_eager_matches_sdpa",  # a plain override beside the variants that it does not stop
    }
