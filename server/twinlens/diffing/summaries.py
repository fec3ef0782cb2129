"""Both traces as two texts for a text diff: paired modules under one name, and numbers that agree written alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twinlens.diffing.diff import Diff
from twinlens.diffing.points import Point
from twinlens.diffing.rows import Row
from twinlens.tracing.record import Statistics, Tensor

_STATISTICS = ("mean", "std", "min", "max", "l2")


def write_summaries(diff: Diff, rows: list[Row], folder: Path) -> tuple[Path, Path]:
    """The reference's and the port's text, written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "reference.json", folder / "port.json"
    for path, is_port in zip(paths, (False, True), strict=True):
        nodes = [node for row in rows if (node := _node(diff, row, is_port=is_port)) is not None]
        beside = path.with_name(f".{path.name}.part")
        beside.write_text(json.dumps(nodes, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(path)
    return paths


def _node(diff: Diff, row: Row, *, is_port: bool) -> dict[str, Any] | None:
    calls, side = (row.port, diff.port) if is_port else (row.reference, diff.reference)
    if not calls:
        return None
    call = side.trace.calls[calls[0]]
    if row.item is None:
        return {"module": call.path, "class": call.class_name}
    name = " + ".join(row.item.pair.port)
    return {
        "module": f"{name} (call {call.number})" if call.number else name,
        "inputs": [_slot(diff, point, is_port=is_port) for point in row.item.inputs],
        "outputs": [_slot(diff, point, is_port=is_port) for point in row.item.outputs],
    }


def _slot(diff: Diff, point: Point, *, is_port: bool) -> dict[str, Any]:
    agrees = point.difference.is_comparable and diff.judge.differences.error(point) <= diff.judge.limits.floor(point)
    tensor = (point.port if is_port and not agrees else point.reference)[0]
    name = point.place_port or point.place_reference or "output"
    return {"name": name, **_numbers(tensor)}


def _numbers(tensor: Tensor) -> dict[str, Any]:
    shown: dict[str, Any] = {"tensor": f"{tensor.dtype} {list(tensor.shape)}"}
    statistics: Statistics | None = tensor.statistics
    if statistics is not None:
        shown |= {name: f"{getattr(statistics, name):.5g}" for name in _STATISTICS}
        if statistics.nans:
            shown["nan"] = statistics.nans
    return shown
