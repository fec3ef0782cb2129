"""Large parameters are read while the forward runs, and what is said of them is what they held before it."""

from __future__ import annotations

import json
import threading

import pytest
import torch
import twinlens
from torch import nn
from twinlens.tracing import parameters
from twinlens.tracing.fingerprint import fingerprint
from twinlens.tracing.reading import read_trace
from twinlens.tracing.record import RECORD_FILE

LARGE = (256, 256)


class Steps(nn.Module):
    """Two large parameters and a small one; `act` is called with the module before anything else."""

    def __init__(self, act=lambda module: None):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Parameter(torch.randn(LARGE)), nn.Parameter(torch.randn(LARGE))
        self.small, self.act = nn.Parameter(torch.randn(3)), act

    def forward(self, x):
        self.act(self)
        return x @ self.first @ self.second


class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.inner = nn.Parameter(torch.ones(LARGE)), nn.Identity()

    def forward(self, x):
        return x @ self.inner(self.weight)


def traced(model, folder):
    with twinlens.model_addition_debugger_context(model, str(folder), packed=True):
        model(torch.ones(1, 256))
    return read_trace(folder)


def prints(trace):
    return {parameter.name.rpartition(".")[2]: parameter.fingerprint for parameter in trace.parameters}


@pytest.fixture
def gate(monkeypatch):
    """Nothing is read beside the forward before this is set."""
    opened, read = threading.Event(), parameters._read

    def waiting(tensor):
        if tensor.numel() > 3:
            opened.wait()
        return read(tensor)

    monkeypatch.setattr(parameters, "_read", waiting)
    return opened


def test_each_is_listed_once_in_the_models_order_with_its_statistics(tmp_path):
    model = Steps()
    trace = traced(model, tmp_path)
    assert [parameter.name for parameter in trace.parameters] == ["Steps.first", "Steps.second", "Steps.small"]
    for parameter, tensor in zip(trace.parameters, model.parameters(), strict=True):
        assert parameter.fingerprint == fingerprint(tensor)
        assert parameter.tensor.statistics.mean == pytest.approx(float(tensor.detach().double().mean()))


def test_a_run_that_was_killed_in_the_forward_names_them_all(tmp_path):
    left = []
    model = Steps(lambda _module: left.append((tmp_path / RECORD_FILE).read_bytes()))
    traced(model, tmp_path)
    (tmp_path / RECORD_FILE).write_bytes(left[0])
    trace = read_trace(tmp_path)
    assert prints(trace) == {"first": None, "second": None, "small": fingerprint(model.small)}
    assert trace.parameters[0].tensor.data is not None


@pytest.mark.parametrize("write", [lambda tensor: tensor.add_(1), lambda tensor: tensor.data.add_(1)])
def test_one_that_the_forward_writes_to_before_it_was_read_has_no_fingerprint(write, gate, tmp_path):
    def act(module):
        with torch.no_grad():
            write(module.second)
        gate.set()

    model = Steps(act)
    held = model.first.clone(), model.second.clone()
    trace = traced(model, tmp_path)
    assert prints(trace) == {"first": fingerprint(held[0]), "second": None, "small": fingerprint(model.small)}
    data = trace.parameters[1].tensor.data
    raw = bytearray((tmp_path / data.file).read_bytes()[data.start : data.stop])
    assert torch.equal(torch.frombuffer(raw, dtype=torch.float32).reshape(LARGE), held[1])


def test_an_interrupt_does_not_wait_for_what_was_not_begun(gate, tmp_path):
    def act(_module):
        threading.Timer(0.05, gate.set).start()
        raise KeyboardInterrupt

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with pytest.raises(KeyboardInterrupt):
            traced(Steps(act), tmp_path)
    finally:
        torch.set_num_threads(before)
    trace = read_trace(tmp_path)
    assert trace.is_complete
    assert prints(trace)["second"] is None
    assert trace.forwards[0].status == "raised"


def test_one_that_is_handed_to_a_module_is_described_before_the_call(tmp_path):
    model = Given()
    trace = traced(model, tmp_path)
    (slot,) = trace.calls[1].inputs
    assert slot.tensor == trace.parameters[0].tensor
    assert slot.tensor.statistics.l2 == 256.0


def test_two_runs_write_the_same_lines(tmp_path):
    model, lines = Steps(), []
    for name in ("one", "two"):
        traced(model, tmp_path / name)
        read = [json.loads(line) for line in (tmp_path / name / RECORD_FILE).read_text().splitlines()[1:]]
        lines.append([{key: value for key, value in line.items() if key != "seconds"} for line in read])
    assert lines[0] == lines[1]


def test_an_error_while_reading_is_raised(monkeypatch, tmp_path):
    def broken(tensor):
        raise RuntimeError("cannot be read")

    monkeypatch.setattr(parameters, "_read", broken)
    with pytest.raises(RuntimeError, match="cannot be read"):
        traced(Steps(), tmp_path)
