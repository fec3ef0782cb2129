"""A diff as one table of two trees: the reference's calls in their order, the port's beside them, lone ones between."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from twinlens.diffing.diff import Diff
from twinlens.diffing.differences import effective
from twinlens.diffing.points import PairedCall, Point
from twinlens.diffing.report import number
from twinlens.diffing.verdict import Verdict
from twinlens.tracing.record import Call, Slot


@dataclass(frozen=True, slots=True)
class Row:
    """One line. Of `reference` and `port` (indices of calls) a lone call has one."""

    parent: int
    """Number of the row that it hangs under; -1 for the top."""
    item: PairedCall | None
    reference: tuple[int, ...]
    port: tuple[int, ...]
    verdict: Verdict
    error: float
    """NaN where there is none."""


def rows_of(diff: Diff) -> list[Row]:
    """All rows, each after the one that it hangs under. Tapped functions are left out."""
    return _Table(diff).rows


class _Table:
    def __init__(self, diff: Diff) -> None:
        self._diff = diff
        self._by_reference = {index: item for item in diff.calls for index in item.reference}
        self._by_port = {index: item for item in diff.calls for index in item.port}
        self._shown_ports: dict[int, int] = {}
        self.rows: list[Row] = []
        roots = [call.index for call in diff.reference.trace.calls if call.parent is None]
        self._fill(roots, -1)
        self._add_lone_ports([call.index for call in diff.port.trace.calls if call.parent is None], -1)
        self._add_what_wrappers_called_last()

    def _fill(self, calls: list[int], parent: int) -> None:
        """Rows for `calls` of the reference and all that they hold, without recursion: models nest deeply."""
        waiting: list[tuple[int, int, bool]] = [(index, parent, False) for index in reversed(calls)]
        while waiting:
            index, above, is_closing = waiting.pop()
            item = self._by_reference.get(index)
            if is_closing:
                ports = item.port if item is not None else ()
                self._add_lone_ports([child for port in ports for child in self._port_children(port)], above)
                continue
            if self._diff.reference.trace.calls[index].is_function:
                continue
            if item is not None:
                self._add_ports_before(item, above)
            own = self._add(index, item, above)
            waiting.append((index, own, True))
            waiting += [(child, own, False) for child in reversed(self._diff.reference.flow.children[index])]

    def _port_children(self, call: int) -> tuple[int, ...]:
        return self._diff.port.flow.children[call]

    def _add(self, index: int, item: PairedCall | None, parent: int) -> int:
        if item is None:
            self.rows.append(Row(parent, None, (index,), (), "unpaired", math.nan))
        else:
            verdict, error = self._diff.verdict(item)
            self.rows.append(Row(parent, item, (index,), item.port, verdict, error))
            self._shown_ports |= dict.fromkeys(item.port, len(self.rows) - 1)
        return len(self.rows) - 1

    def _add_ports_before(self, item: PairedCall, parent: int) -> None:
        """Lone calls of the port before the partner of the next row: those around it, and what they called earlier."""
        chain = [item.port[0]]
        for outer in self._diff.port.flow.ancestors(item.port[0]):
            chain.append(outer)
            if outer in self._by_port:
                break
        for outer, inner in pairwise(reversed(chain)):
            self._add_lone_port(outer, parent)
            self._add_lone_ports([child for child in self._port_children(outer) if child < inner], parent)

    def _add_lone_port(self, index: int, parent: int) -> int | None:
        """Its row's number; None where it is shown already, or elsewhere."""
        if index in self._shown_ports or index in self._by_port or self._diff.port.trace.calls[index].is_function:
            return None
        verdict = self._diff.origin_verdict(index) or "unpaired"
        self.rows.append(Row(parent, None, (), (index,), verdict, math.nan))
        self._shown_ports[index] = len(self.rows) - 1
        return len(self.rows) - 1

    def _add_lone_ports(self, calls: list[int], parent: int) -> None:
        for index in calls:
            own = self._add_lone_port(index, parent)
            if own is not None:
                self._add_lone_ports(list(self._port_children(index)), own)

    def _add_what_wrappers_called_last(self) -> None:
        """A lone call around a paired one stands beside it, and so does what it calls after that."""
        for call in self._diff.port.trace.calls:
            if call.parent is not None and call.parent in self._shown_ports:
                wrapper = self.rows[self._shown_ports[call.parent]]
                self._add_lone_ports([call.index], wrapper.parent)


def table_as_json(diff: Diff, rows: list[Row]) -> dict[str, Any]:
    """What the page is given: every row in short keys, and which rows are origins."""
    places = {(row.reference, row.port): place for place, row in enumerate(rows)}
    by_port = {index: place for place, row in enumerate(rows) for index in row.port}
    origins = []
    for diagnosis in diff.diagnoses:
        place = by_port.get(diagnosis.origin.port_frame, places.get(((diagnosis.origin.reference_frame,), ()), -1))
        codes = [cause.code for cause in diagnosis.causes] or ["unknown"]
        messages = [cause.message for cause in diagnosis.causes]
        origins.append({"row": place, "code": codes[0], "message": messages[0] if messages else ""})
    return {"rows": list(_short(diff, rows)), "origins": origins}


def _short(diff: Diff, rows: list[Row]) -> Iterator[dict[str, Any]]:
    """`p` parent, `r` and `q` paths, `c` number of the call, `v` verdict, `e` error, `h` how it was paired, `s` shape,
    `t` dtype, `k` class."""
    for row in rows:
        ours = [diff.reference.trace.calls[index] for index in row.reference]
        theirs = [diff.port.trace.calls[index] for index in row.port]
        shown = (theirs or ours)[0]
        output = _first_output(shown)
        yield {
            "p": row.parent,
            "r": ours[0].path if ours else None,
            "q": " + ".join(call.path for call in theirs) or None,
            "c": shown.number,
            "v": row.verdict,
            "e": None if math.isnan(row.error) else number(row.error),
            "h": row.item.pair.how if row.item else None,
            "s": list(output.tensor.shape) if output and output.tensor else None,
            "t": output.tensor.dtype if output and output.tensor else None,
            "k": shown.class_name,
        }


def _first_output(call: Call) -> Slot | None:
    return next((slot for slot in call.outputs if slot.tensor is not None), None)


def worst_of(points: tuple[Point, ...]) -> Point | None:
    known = [point for point in points if point.difference.is_comparable]
    return max(known, key=effective) if known else None
