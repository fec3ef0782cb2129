"""A record is read back as it was written, whole or cut short."""

from __future__ import annotations

import json
import math

import pytest
from twinlens.tracing import lines
from twinlens.tracing.reading import read_header, read_trace
from twinlens.tracing.record import (
    RECORD_FILE,
    Call,
    Data,
    Error,
    Fingerprint,
    Forward,
    Info,
    Module,
    Parameter,
    Slot,
    Source,
    Statistics,
    Tensor,
    TraceError,
)

INFO = Info(
    class_name="Net", created="2026-11-30T19:34:02Z", seed=673, config={"eps": 1e-6}, versions={"torch": "2.13"}
)
STATISTICS = Statistics(0.5, 0.25, -1.0, 2.0, 2.0, 3.5, 1, 0, 0, 0)
FIRST = Tensor(0, (2, 3), "float32", (3, 1), "cpu", 0, STATISTICS, Data("tensors-00000.safetensors", 4096, 4120))
SECOND = Tensor(1, (0,), "int64", (1,), "cpu", 1, None, omitted="filtered")
MODULE = Module("Net.fc", ("Net.tied",), "Linear", "torch.nn.Linear", Source("net.py", 12, 5), True, {"eps": math.inf})
PARAMETER = Parameter("Net.fc.weight", (), False, True, FIRST, Fingerprint("0" * 16, "1" * 16, "2" * 16))
ROOT = Call(0, None, 0, "Net", "Net", 0, (Slot("x", FIRST), Slot("flag", None, "False")))
CHILD = Call(1, 0, 0, "Net.fc", "Linear", 0, (Slot("input", FIRST),))


def write(folder, *written):
    (folder / "trace.jsonl").write_text("".join(f"{line}\n" for line in written))


def whole_record():
    return [
        lines.trace_line(INFO),
        lines.module_line(MODULE),
        lines.parameter_line(PARAMETER),
        lines.forward_line(0, "a" * 16),
        lines.enter_line(ROOT, ()),
        lines.enter_line(CHILD, ()),
        lines.leave_line(1, 0.001, (Slot("", SECOND),), (SECOND,)),
        lines.leave_line(0, 0.002, (Slot("[0]", SECOND), Slot("[1]", None, "None")), ()),
        lines.forward_end_line(Forward(0, "a" * 16, "complete", 0.002)),
        lines.end_line(0.003),
    ]


def test_a_whole_record_is_read_back_as_it_was_written(tmp_path):
    write(tmp_path, *whole_record())
    trace = read_trace(tmp_path)
    assert trace.is_complete
    assert trace.info == INFO
    assert trace.modules[0].attributes == {"eps": "Infinity"}
    assert trace.modules[0].source == Source("net.py", 12, 5)
    assert trace.parameters == (PARAMETER,)
    assert trace.forwards == (Forward(0, "a" * 16, "complete", 0.002),)
    root, child = trace.calls
    assert root.inputs == ROOT.inputs
    assert root.outputs == (Slot("[0]", SECOND), Slot("[1]", None, "None"))
    assert child.parent == 0
    assert child.outputs[0].tensor is root.outputs[0].tensor


def test_a_record_cut_in_the_middle_of_a_line_keeps_every_whole_line(tmp_path):
    write(tmp_path, *whole_record())
    path = tmp_path / "trace.jsonl"
    text = path.read_bytes()
    path.write_bytes(text[: text.index(b'"kind":"leave","call":0') + 10])
    trace = read_trace(tmp_path)
    assert not trace.is_complete
    assert trace.forwards[0].status == "unfinished"
    assert [call.seconds for call in trace.calls] == [None, 0.001]


def test_a_call_that_raised_carries_its_error(tmp_path):
    error = Error("ValueError", "bad shape", 'File "net.py", line 3')
    write(tmp_path, *whole_record()[:6], lines.raise_line(1, 0.001, error))
    assert read_trace(tmp_path).calls[1].error == error


def test_non_finite_numbers_are_strings_on_disk_and_floats_in_memory(tmp_path):
    statistics = Statistics(math.nan, math.nan, -math.inf, math.inf, math.inf, math.nan, 0, 3, 1, 1)
    tensor = Tensor(0, (5,), "float32", (1,), "cpu", 0, statistics)
    line = lines.enter_line(Call(0, None, 0, "Net", "Net", 0, (Slot("x", tensor),)), (tensor,))
    assert json.loads(line, parse_constant=pytest.fail)["tensors"][0]["statistics"][2] == "-Infinity"
    write(tmp_path, lines.trace_line(INFO), line)
    read = read_trace(tmp_path).calls[0].inputs[0].tensor.statistics
    assert math.isnan(read.mean)
    assert (read.min, read.max, read.nans) == (-math.inf, math.inf, 3)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("", "is empty: the run ended before it began"),
        ("[1, 2]\n", "line 1: not a line of a trace"),
        ('{"kind": "module"}\n', "the first line is not that of a trace"),
        ('{"kind": "trace", "format": 99}\n', "format 99, this Twinlens reads 2"),
        (lines.trace_line(INFO) + "\n{oops}\n", "line 2: not JSON"),
        (lines.trace_line(INFO) + '\n{"kind":"end","seconds":NaN}\n', "line 2: not JSON"),
        (lines.trace_line(INFO) + '\n{"kind":"surprise"}\n', "line 2: not a line of a trace"),
        (lines.trace_line(INFO) + "\n" + lines.enter_line(CHILD, ()) + "\n", "line 2: not a line of a trace"),
    ],
)
def test_a_damaged_record_gets_one_sentence_that_names_the_file(tmp_path, damage, sentence):
    (tmp_path / "trace.jsonl").write_text(damage)
    with pytest.raises(TraceError, match=RECORD_FILE) as caught:
        read_trace(tmp_path)
    assert sentence in str(caught.value)


def test_a_folder_without_a_record_is_said_to_hold_no_trace(tmp_path):
    with pytest.raises(TraceError, match="holds no trace"):
        read_trace(tmp_path / "missing")


def test_the_header_is_read_without_the_rest(tmp_path):
    (tmp_path / "trace.jsonl").write_text(lines.trace_line(INFO) + "\n{oops}\n")
    assert read_header(tmp_path) == INFO


def test_tensors_that_no_line_described_are_refused(tmp_path):
    write(tmp_path, lines.trace_line(INFO), lines.enter_line(ROOT, ()))
    with pytest.raises(TraceError, match="line 2"):
        read_trace(tmp_path)
