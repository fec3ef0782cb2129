"""One self-contained page of a scan: a sortable table with bars, and a heat map of models against tests."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from twinlens.skips.reasons import group_reasons
from twinlens.skips.report import TestAnswer, all_answers
from twinlens.skips.results import Scan
from twinlens.skips.states import Outcome, State

_DATA = "/*DATA*/"
_REASONS = 3


def page(scan: Scan) -> str:
    """The page as HTML: it holds its data, and loads nothing from anywhere."""
    template = files("twinlens.skips").joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps(_data(scan), ensure_ascii=False, separators=(",", ":"))
    return template.replace(_DATA, data.replace("<", "\\u003c"))


def _data(scan: Scan) -> dict[str, Any]:
    outcomes: dict[Outcome, int] = {}
    answers = list(all_answers(scan))
    return {
        "models": scan.models,
        "states": [state.value for state in State],
        "tests": [_test(answer) for answer in answers],
        "cells": [_cells(answer, outcomes) for answer in answers],
        "outcomes": [[o.state.value, o.reason or o.condition, f"{o.path}:{o.line}"] for o in outcomes],
    }


def _test(answer: TestAnswer) -> dict[str, Any]:
    groups = group_reasons((found.model, reason) for found in answer.skipped for reason in found.reasons)
    return {
        "name": answer.test.name,
        "origin": answer.test.origin,
        "skipped": len(answer.skipped),
        "mixed": len(answer.mixed),
        "models": len(answer.models),
        "na": len(answer.not_applicable),
        "reasons": [[group.reason, len(group.models)] for group in groups[:_REASONS]],
    }


def _cells(answer: TestAnswer, outcomes: dict[Outcome, int]) -> dict[str, list[Any]]:
    """For each model that inherits the test: its state, then class and outcome by turns."""
    cells: dict[str, list[Any]] = {}
    for found in answer.models:
        cell: list[Any] = [found.state]
        for cls, outcome in found.classes:
            cell += [cls.name, outcomes.setdefault(outcome, len(outcomes))]
        cells[found.model] = cell
    return cells
