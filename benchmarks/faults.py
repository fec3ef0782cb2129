"""Put every fault of the suite into a port and see who names its place and its cause.

    python benchmarks/faults.py [WORD …]

One line a case (those whose name holds every WORD), then two tables: ours, and what other tools' default rules say of
the same traces. Of a fault, a rule is right when the first module it fails is the faulty one or lies in it; of a pair
without a fault, any failure is a false alarm. The peers are given our pairs of modules, which most could not make.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "server" / "diffing"))

from faults.pairs import Case, write_traces  # ty: ignore[import-not-found]
from faults.suite import CONTROLS, SINGLE, STACKED  # ty: ignore[import-not-found]
from peers import RULES, Outputs, Rule
from twinlens.diffing.diff import Diff, diff_folders
from twinlens.diffing.points import Point
from twinlens.diffing.shapes import conformed
from twinlens.diffing.values import Array


def main(words: list[str]) -> None:
    torch.set_num_threads(1)
    ours: Counter[str] = Counter()
    peers: dict[str, Counter[str]] = {name: Counter() for name in RULES}
    for case in (*SINGLE, *STACKED, *CONTROLS):
        for dtype in case.dtypes:
            if all(word in f"{case.family} {case.name} {dtype}" for word in words):
                with tempfile.TemporaryDirectory() as folder:
                    diff = diff_folders(*write_traces(case, dtype, Path(folder)))
                    print(
                        f"{_judge(case, diff, ours):5} {case.family:8} {dtype:9} {case.name}: {_said(diff)}", flush=True
                    )
                    for name, rule in RULES.items():
                        _judge_peer(case, _failures(diff, rule), peers[name])
    _table("twinlens", ours)
    for name, counts in peers.items():
        _table(name, counts)


def _said(diff: Diff) -> str:
    said = [f"{path or 'the root'} {'/'.join(codes) or 'unknown'}" for path, codes in _origins(diff)]
    return "; ".join(said) or diff.outcome


def _origins(diff: Diff) -> list[tuple[str, list[str]]]:
    calls = diff.port.trace.calls
    return [
        (calls[d.origin.port_frame].path.partition(".")[2], list(dict.fromkeys(c.code for c in d.causes)))
        for d in diff.diagnoses
    ]


def _judge(case: Case, diff: Diff, counts: Counter[str]) -> str:
    origins = _origins(diff)
    if not case.causes:
        counts["controls"] += 1
        counts["false alarms"] += diff.outcome != "agree"
        return "ok" if diff.outcome == "agree" else "ALARM"
    if len(case.causes) > 1:
        named = {code for _path, codes in origins for code in codes}
        counts["stacked"] += 1
        counts["stacked, all named"] += named >= set(case.causes)
        return "ok" if named >= set(case.causes) else "MISS"
    (code, places), *_ = case.causes.items()
    right_place = bool(origins) and origins[0][0] in places
    right_cause = bool(origins) and origins[0][1][:1] == [code]
    counts["faults"] += 1
    counts["origin right"] += right_place
    counts["cause right"] += right_cause
    counts["other origins named"] += len(origins) > 1
    return "ok" if right_place and right_cause else "MISS"


def _failures(diff: Diff, rule: Rule) -> list[str]:
    """Paths, root left out, of the leaves that fail a rule, in the order of execution."""
    failed: list[str] = []
    for item in diff.calls:
        flow = diff.port.flow
        if any(flow.children[call] for call in item.port) or diff.port.trace.calls[item.port[0]].is_function:
            continue
        values = _values(diff, item.outputs)
        given = _values(diff, item.inputs)
        if values is None:
            continue
        with np.errstate(all="ignore"):
            if rule(Outputs(*values, *(given or (None, None)))):
                failed.append(item.pair.port[0].partition(".")[2])
    return failed


def _values(diff: Diff, points: Iterable[Point]) -> tuple[Array, Array] | None:
    for point in points:
        if len(point.reference) + len(point.port) > 2 or point.difference.basis != "values":
            continue
        both = conformed(diff.reference.values.array(point.reference[0]), diff.port.values.array(point.port[0]))
        if both is not None:
            ours, theirs = (np.nan_to_num(np.asarray(x, np.float64).reshape(-1)) for x in both)
            return ours, theirs
    return None


def _judge_peer(case: Case, failed: list[str], counts: Counter[str]) -> None:
    if not case.causes:
        counts["controls"] += 1
        counts["false alarms"] += bool(failed)
        return
    if len(case.causes) > 1:
        return
    places = next(iter(case.causes.values()))
    counts["faults"] += 1
    counts["seen at all"] += bool(failed)
    counts["origin right"] += bool(failed) and any(_holds(place, failed[0]) for place in places)


def _holds(place: str, path: str) -> bool:
    return path == place or path.startswith(f"{place}." if place else "")


def _table(name: str, counts: Counter[str]) -> None:
    faults, controls = counts["faults"] or 1, counts["controls"] or 1
    print(
        f"{name:16} origin {counts['origin right'] / faults:6.1%}  cause {counts['cause right'] / faults:6.1%}  "
        f"false alarms {counts['false alarms']}/{controls}  of {counts['faults']} faults"
        + (f"  seen at all {counts['seen at all'] / faults:6.1%}" if "seen at all" in counts else "")
        + (f"  stacked {counts['stacked, all named']}/{counts['stacked']}" if counts["stacked"] else "")
        + (f"  with further origins {counts['other origins named']}" if counts["other origins named"] else "")
    )


if __name__ == "__main__":
    main(sys.argv[1:])
