"""The table shows every call of both sides once: pairs in one row, lone ones between their neighbours."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from traces import Net, inputs, net, write_trace
from twinlens.diffing.diff import Diff, Options, diff_folders
from twinlens.diffing.mapfile import MapFile
from twinlens.diffing.rows import Row, rows_of, table_as_json


class Wrapped(nn.Module):
    """The net in a wrapper, with a module before and one behind that the original lacks."""

    def __init__(self, original: Net):
        super().__init__()
        self.first = nn.Identity()
        self.body = original
        self.last = nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.body(self.first(x)))


def compared(tmp_path: Path, options: Options | None = None) -> Diff:
    ours = write_trace(tmp_path / "reference", net(), inputs())
    return diff_folders(ours, write_trace(tmp_path / "port", Wrapped(net()).eval(), inputs()), options)


def shown(diff: Diff, rows: list[Row]) -> list[tuple[str | None, str | None]]:
    table = table_as_json(diff, rows)["rows"]
    return [(row["r"], row["q"]) for row in table]


def test_every_call_of_the_port_has_one_row(tmp_path: Path):
    diff = compared(tmp_path)
    ports = [port for row in rows_of(diff) for port in row.port]
    assert sorted(ports) == [call.index for call in diff.port.trace.calls if not call.is_function]


def test_lone_modules_stand_before_and_behind_their_neighbours(tmp_path: Path):
    diff = compared(tmp_path)
    rows = shown(diff, rows_of(diff))
    lone = [port for reference, port in rows if reference is None]
    assert lone == ["Wrapped", "Wrapped.first", "Wrapped.last"]
    assert rows.index((None, "Wrapped.first")) < rows.index(("Net.layers.0", "Wrapped.body.layers.0"))
    assert rows.index((None, "Wrapped.last")) > rows.index(("Net.layers.2", "Wrapped.body.layers.2"))


def test_a_pair_taken_apart_shows_both_sides_alone(tmp_path: Path):
    apart = MapFile(apart_reference=("layers.2.down",), apart_port=("body.layers.2.down",))
    diff = compared(tmp_path, Options(mapping=apart))
    rows = shown(diff, rows_of(diff))
    assert ("Net.layers.2.down", None) in rows
    assert (None, "Wrapped.body.layers.2.down") in rows


def test_rows_hang_under_the_row_of_their_caller(tmp_path: Path):
    diff = compared(tmp_path)
    rows = rows_of(diff)
    for place, row in enumerate(rows):
        assert row.parent < place
