"""A fault put into a port is found where it is and named for what it is; a right port raises no alarm.

Each cause once, in float32, and what bfloat16 alone can show. `benchmarks/faults.py` runs every case in every dtype.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.pairs import Case, write_traces
from faults.suite import CONTROLS, SINGLE, STACKED
from twinlens.diffing.diff import Diff, diff_folders


def found(case: Case, dtype: str, folder: Path) -> Diff:
    return diff_folders(*write_traces(case, dtype, folder))


def names(diff: Diff) -> list[tuple[str, str]]:
    """(path without its root, code) of each origin."""
    calls = diff.port.trace.calls
    return [
        (calls[d.origin.port_frame].path.partition(".")[2], d.causes[0].code if d.causes else "unknown")
        for d in diff.diagnoses
    ]


def one_of_each(cases: tuple[Case, ...]) -> list[Case]:
    """The first case of each cause in each family."""
    seen: set[tuple[str, str]] = set()
    chosen = []
    for case in cases:
        key = (case.family, next(iter(case.causes)))
        if key not in seen:
            seen.add(key)
            chosen.append(case)
    return chosen


@pytest.mark.parametrize("case", one_of_each(SINGLE), ids=lambda case: f"{case.family}: {case.name}")
def test_the_fault_is_found_where_it_is_and_named(case: Case, tmp_path: Path):
    diff = found(case, case.dtypes[0], tmp_path)
    (code, places), *_ = case.causes.items()
    assert diff.outcome == ("inputs differ" if code == "preprocessing" else "differ")
    path, named = names(diff)[0]
    assert (path in places, named) == (True, code), names(diff)


@pytest.mark.parametrize("case", STACKED, ids=lambda case: case.name)
def test_of_two_faults_both_are_named(case: Case, tmp_path: Path):
    diff = found(case, "float32", tmp_path)
    codes = {cause.code for diagnosis in diff.diagnoses for cause in diagnosis.causes}
    assert codes >= set(case.causes)


@pytest.mark.parametrize("case", CONTROLS, ids=lambda case: f"{case.family}: {case.name}")
def test_a_right_port_raises_no_alarm(case: Case, tmp_path: Path):
    diff = found(case, case.dtypes[-1], tmp_path)
    assert diff.outcome == "agree", names(diff)


def test_repeated_layers_with_one_fault_are_one_origin(tmp_path: Path):
    case = next(case for case in SINGLE if case.name == "eps 1e-3 for 1e-6" and case.family == "decoder")
    diff = found(case, "float32", tmp_path)
    assert len(diff.diagnoses) == 1
    assert len(diff.diagnoses[0].also) >= 2
