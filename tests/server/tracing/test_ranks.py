"""The ranks' traces merge into one."""

from __future__ import annotations

import statistics as reference

import pytest
from twinlens.tracing import lines
from twinlens.tracing.ranks import combine
from twinlens.tracing.reading import read_trace
from twinlens.tracing.record import Call, Data, Info, Piece, Slot, Statistics, Tensor


def statistics_of(values):
    std = reference.stdev(values) if len(values) > 1 else float("nan")
    absolute = [abs(v) for v in values]
    l2 = sum(v * v for v in values) ** 0.5
    return Statistics(
        reference.fmean(values), std, min(values), max(values), max(absolute), l2, values.count(0), 0, 0, 0
    )


def test_statistics_of_parts_combine_to_those_of_the_whole():
    whole = [1.0, 4.0, 0.0, -2.5, 8.0, 3.0, 3.0]
    combined = combine((len(part), statistics_of(part)) for part in (whole[:3], whole[3:4], whole[4:]))
    assert combined == pytest.approx(statistics_of(whole))


def test_a_part_without_finite_elements_adds_only_its_counts():
    nan = float("nan")
    broken = Statistics(nan, nan, nan, nan, nan, nan, 0, 2, 0, 0)
    combined = combine([(2, broken), (3, statistics_of([1.0, 2.0, 3.0]))])
    assert combined.mean == 2.0
    assert combined.nans == 2


def shard(rank, start, values):
    data = Data("tensors-00000.safetensors", 64, 64 + 8 * len(values))
    piece = Piece(rank, (start,), (len(values),), data)
    return Tensor(0, (4,), "float64", (1,), "cpu", 0, statistics_of(values), placement="Shard(dim=0)", pieces=(piece,))


def write_rank(folder, rank, tensor):
    folder.mkdir(exist_ok=True)
    call = Call(0, None, 0, "Net", "Net", 0, (Slot("x", tensor),))
    info = Info("Net", "2026-11-30T19:34:02Z", rank=rank, world_size=2)
    (folder / "trace.jsonl").write_text(f"{lines.trace_line(info)}\n{lines.enter_line(call, (tensor,))}\n")


def test_the_shards_of_a_tensor_become_one_with_its_pieces_by_rank(tmp_path):
    write_rank(tmp_path, 0, shard(0, 0, [1.0, 2.0]))
    write_rank(tmp_path / "rank-00001", 1, shard(1, 2, [3.0, 6.0]))
    trace = read_trace(tmp_path)
    tensor = trace.calls[0].inputs[0].tensor
    assert tensor.statistics == pytest.approx(statistics_of([1.0, 2.0, 3.0, 6.0]))
    assert [(piece.rank, piece.start, piece.data.file) for piece in tensor.pieces] == [
        (0, (0,), "tensors-00000.safetensors"),
        (1, (2,), "rank-00001/tensors-00000.safetensors"),
    ]
    assert [rank.info.rank for rank in trace.ranks] == [0, 1]


def test_a_tensor_that_every_rank_holds_whole_is_the_first_ranks(tmp_path):
    write_rank(tmp_path, 0, shard(0, 0, [1.0, 2.0, 3.0, 4.0]))
    write_rank(tmp_path / "rank-00001", 1, shard(1, 0, [1.0, 2.0, 3.0, 4.0]))
    tensor = read_trace(tmp_path).calls[0].inputs[0].tensor
    assert tensor.pieces == ()
    assert tensor.data == Data("tensors-00000.safetensors", 64, 96)
