"""All that the page shows of one row: arguments, statistics, the worst element, tokens, causes and sources."""

from __future__ import annotations

import math
from typing import Any

from twinlens.diffing.compare import token_strip
from twinlens.diffing.diff import Diff, causes_or_unknown, is_origin
from twinlens.diffing.nodes import Side
from twinlens.diffing.points import PairedCall, Point
from twinlens.diffing.report import cause_as_json, error_as_json, number
from twinlens.diffing.rows import Row, worst_of
from twinlens.diffing.shapes import conformed
from twinlens.tracing.record import Slot, Statistics

_MOST_ARGUMENTS = 40
_STATISTICS = ("mean", "std", "min", "max", "l2")


def details_of(diff: Diff, row: Row) -> dict[str, Any]:
    """JSON values only."""
    return {
        "reference": _call(diff.reference, row.reference),
        "port": _call(diff.port, row.port),
        "verdict": row.verdict,
        "how": row.item.pair.how if row.item else None,
        "note": row.item.note if row.item else "",
        "tensors": _tensors(row.item) if row.item else [],
        "tokens": _tokens(diff, row.item) if row.item else [],
        "causes": _causes(diff, row),
    }


def _call(side: Side, calls: tuple[int, ...]) -> dict[str, Any] | None:
    if not calls:
        return None
    call = side.trace.calls[calls[0]]
    module = side.modules.get(call.path)
    source = module.source if module else None
    return {
        "paths": [side.trace.calls[index].path for index in calls],
        "class": call.class_name,
        "file": source.file if source else None,
        "line": source.line if source else None,
        "seconds": call.seconds,
        "training": module.training if module else None,
        "error": f"{call.error.type}: {call.error.message}" if call.error else None,
        "arguments": [_argument(slot) for slot in call.inputs[:_MOST_ARGUMENTS]],
        "attributes": dict(module.attributes) if module else {},
    }


def _argument(slot: Slot) -> dict[str, Any]:
    if slot.tensor is None:
        return {"name": slot.place, "value": slot.text}
    return {"name": slot.place, "value": f"{slot.tensor.dtype} {list(slot.tensor.shape)}"}


def _tensors(item: PairedCall) -> list[dict[str, Any]]:
    return [_tensor(point) for point in (*item.inputs, *item.outputs)]


def _tensor(point: Point) -> dict[str, Any]:
    shown = point.permuted if point.permuted is not None and point.permuted.is_comparable else point.difference
    return {
        "side": point.side,
        "place": point.place_port or point.place_reference,
        "reference": _side(point.reference[0].statistics, point.reference[0].shape, point.reference[0].dtype),
        "port": _side(point.port[0].statistics, point.port[0].shape, point.port[0].dtype),
        "error": error_as_json(shown),
        "permuted": point.permuted is not None,
        "note": point.difference.note,
    }


def _side(statistics: Statistics | None, shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
    numbers = {name: number(getattr(statistics, name)) if statistics else None for name in _STATISTICS}
    counts = {
        "nans": statistics.nans if statistics else 0,
        "infinities": statistics.positive_infinities + statistics.negative_infinities if statistics else 0,
    }
    return {"shape": list(shape), "dtype": dtype, **numbers, **counts}


def _tokens(diff: Diff, item: PairedCall) -> list[float | str | None]:
    """The relative error of each token of the worst output."""
    point = worst_of(item.outputs)
    if point is None or len(point.reference) + len(point.port) > 2 or point.difference.basis != "values":
        return []
    both = conformed(diff.reference.values.array(point.reference[0]), diff.port.values.array(point.port[0]))
    return [] if both is None else [number(float(error)) for error in token_strip(*both)]


def _causes(diff: Diff, row: Row) -> list[dict[str, Any]]:
    for diagnosis in diff.diagnoses:
        if any(is_origin(diagnosis, call) for call in row.port):
            return [cause_as_json(diff, diagnosis, cause) for cause in causes_or_unknown(diagnosis)]
    return []


def plot_of(rows: list[Row], width: int) -> list[dict[str, Any]]:
    """The error over depth: at most `width` points, each the worst of as many neighbouring rows."""
    known = [(place, row) for place, row in enumerate(rows) if not math.isnan(row.error)]
    step = max(1, math.ceil(len(known) / width))
    return [
        {"row": place, "error": number(row.error)}
        for start in range(0, len(known), step)
        for place, row in [max(known[start : start + step], key=lambda item: item[1].error)]
    ]
