"""What a run records beyond the upstream context's files."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import subprocess
import sys
import textwrap
from typing import NamedTuple

import pytest
import torch
import twinlens
from safetensors.torch import load_file
from torch import nn
from twinlens.tracing.reading import read_trace
from twinlens.tracing.record import TraceError


def trace_of(folder, model, *args, **options):
    options = options or {"packed": True}
    with twinlens.model_addition_debugger_context(model, str(folder), **options):
        model(*args)
    return read_trace(folder)


def values(trace, tensor, dtype=torch.float32):
    raw = (trace.folder / tensor.data.file).read_bytes()[tensor.data.start : tensor.data.stop]
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(tensor.shape)


def test_every_module_call_is_there_with_names_results_and_parents(net, tmp_path):
    x = torch.randn(2, 4)
    trace = trace_of(tmp_path, net, x)
    assert trace.is_complete
    assert [call.path for call in trace.calls[:4]] == ["Net", "Net.layers.0", "Net.layers.0.up", "Net.layers.0.down"]
    assert [call.parent for call in trace.calls[:4]] == [None, 0, 1, 1]
    first = trace.calls[1]
    assert [(slot.place, slot.text) for slot in first.inputs] == [("hidden_states", ""), ("scale", "0.5")]
    assert torch.equal(values(trace, first.outputs[0].tensor), net.layers[0](x, 0.5).detach())
    assert trace.calls[5].inputs[0].tensor.id == first.outputs[0].tensor.id


def test_modules_are_described_with_their_source_and_plain_attributes(tmp_path):
    trace = trace_of(tmp_path, nn.Sequential(nn.LayerNorm(4, eps=1e-3)), torch.randn(2, 4))
    norm = trace.modules[1]
    assert (norm.path, norm.qualified_name) == ("Sequential.0", "torch.nn.modules.normalization.LayerNorm")
    assert norm.attributes["eps"] == 1e-3
    assert norm.source.file.endswith("normalization.py")
    assert norm.source.class_line < norm.source.line


def test_parameters_and_buffers_are_there_before_the_first_call(tmp_path):
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    model.register_buffer("cached", torch.tensor([1.0]), persistent=False)
    trace = trace_of(tmp_path, model.eval(), torch.randn(2, 3))
    parameters = {parameter.name: parameter for parameter in trace.parameters}
    assert torch.equal(values(trace, parameters["Sequential.1.weight"].tensor), model[1].weight.detach())
    assert parameters["Sequential.0.running_mean"].is_buffer
    assert parameters["Sequential.0.running_mean"].is_persistent
    assert not parameters["Sequential.cached"].is_persistent
    assert all(len(parameter.fingerprint.values) == 16 for parameter in trace.parameters)


def test_tied_parameters_and_shared_modules_are_listed_once_with_all_their_names(tmp_path):
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, shared, nn.Linear(3, 3))
    model[2].weight = shared.weight
    trace = trace_of(tmp_path, model, torch.randn(1, 3))
    assert [(module.path, module.aliases) for module in trace.modules[1:]] == [
        ("Sequential.0", ("Sequential.1",)),
        ("Sequential.2", ()),
    ]
    weight = trace.parameters[0]
    assert (weight.name, weight.aliases) == ("Sequential.0.weight", ("Sequential.1.weight", "Sequential.2.weight"))
    assert [(call.path, call.number) for call in trace.calls[1:]] == [
        ("Sequential.0", 0),
        ("Sequential.0", 1),
        ("Sequential.2", 0),
    ]


class Holder(nn.Module):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, x, **more):
        return self.result(x)


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclasses.dataclass
class Output:
    state: torch.Tensor
    note: str = "fine"


class Cache:
    def __init__(self, key):
        self.layers = [Output(key)]
        self.length = 3


@pytest.mark.parametrize(
    ("result", "places"),
    [
        (lambda x: (x, None), ["[0]", "[1]"]),
        (lambda x: {"a": x, "b": [x, x]}, ["a", "b[0]", "b[1]"]),
        (lambda x: {0: x}, ["[0]"]),
        (lambda x: Pair(x, x), ["left", "right"]),
        (lambda x: Output(x), ["state", "note"]),
        (lambda x: Cache(x), ["layers[0].state", "layers[0].note"]),
        (lambda x: x.sum(), [""]),
        (lambda x: 3, [""]),
        (lambda x: [], [""]),
    ],
)
def test_results_are_taken_apart_to_their_tensors(result, places, tmp_path):
    trace = trace_of(tmp_path, Holder(result), torch.ones(2))
    assert [slot.place for slot in trace.calls[0].outputs] == places


def test_a_cache_of_transformers_gives_its_tensors(tmp_path):
    transformers = pytest.importorskip("transformers")
    cache = transformers.DynamicCache()
    cache.update(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
    trace = trace_of(tmp_path, Holder(lambda x: x), cache)
    tensors = {slot.place: slot.tensor.shape for slot in trace.calls[0].inputs if slot.tensor}
    assert tensors == {"x.layers[0].keys": (1, 2, 3, 4), "x.layers[0].values": (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("tensor", "omitted"),
    [
        (torch.empty(2, 3, device="meta"), "meta"),
        (torch.eye(3).to_sparse(), "not strided"),
        (torch.empty(0, 3), ""),
        (torch.tensor(2.0), ""),
        (torch.tensor([1 + 1j]), ""),
        (torch.ones(2).to(torch.float8_e4m3fn), ""),
    ],
)
def test_unusual_tensors_are_recorded(tensor, omitted, tmp_path):
    trace = trace_of(tmp_path, Holder(lambda x: x), tensor)
    recorded = trace.calls[0].inputs[0].tensor
    assert recorded.shape == tuple(tensor.shape)
    assert recorded.omitted == omitted


def test_what_is_captured_is_not_changed_by_what_is_written_later(tmp_path):
    def in_place(x):
        x += 1
        return x

    trace = trace_of(tmp_path, Holder(in_place), torch.zeros(3))
    call = trace.calls[0]
    before, after = call.inputs[0].tensor, call.outputs[0].tensor
    assert values(trace, before).tolist() == [0, 0, 0]
    assert values(trace, after).tolist() == [1, 1, 1]
    assert before.storage == after.storage


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8], ids=str)
def test_a_write_that_torch_does_not_count_is_seen(dtype, tmp_path):
    def behind_torchs_back(x):
        x.numpy()[777] = 5
        return x

    trace = trace_of(tmp_path, Holder(behind_torchs_back), torch.zeros(1001, dtype=dtype))
    assert values(trace, trace.calls[0].outputs[0].tensor, dtype).nonzero().item() == 777


def test_a_new_tensor_at_an_old_address_is_a_tensor_of_its_own(tmp_path):
    model = nn.Sequential(*(Holder(lambda x, k=k: torch.full((1000,), float(k))) for k in range(20)))
    trace = trace_of(tmp_path, model, torch.zeros(1000))
    assert [call.outputs[0].tensor.statistics.mean for call in trace.calls[1:]] == list(range(20))
    assert len({call.outputs[0].tensor.storage for call in trace.calls[1:]}) == 20


def test_attention_and_routing_functions_are_calls_of_their_own(tmp_path):
    def attend(x):
        weights = torch.nn.functional.softmax(x, dim=-1)
        return torch.nn.functional.scaled_dot_product_attention(x, x, weights, scale=0.5)

    trace = trace_of(tmp_path, Holder(attend), torch.randn(1, 2, 3, 3))
    _root, softmax, attention = trace.calls
    assert (softmax.path, softmax.class_name, softmax.is_function) == ("Holder.softmax()", "softmax", True)
    assert [slot.place for slot in attention.inputs] == ["query", "key", "value", "scale"]
    assert attention.inputs[2].tensor.id == softmax.outputs[0].tensor.id


def test_only_statistics_are_kept_when_only_they_are_asked_for(net, tmp_path):
    trace = trace_of(tmp_path, net, torch.randn(2, 4), stats_only=True)
    tensors = [slot.tensor for call in trace.calls for slot in call.inputs if slot.tensor]
    assert {tensor.omitted for tensor in tensors} == {"stats only"}
    assert all(tensor.data is None and tensor.token_norms is not None for tensor in tensors)
    assert all(parameter.fingerprint for parameter in trace.parameters)


@pytest.mark.parametrize("pattern", ["Net.layers.1", "layers.1"])
def test_values_are_kept_for_the_modules_that_a_pattern_names_and_what_they_call(pattern, net, tmp_path):
    trace = trace_of(tmp_path, net, torch.randn(2, 4), only=[pattern])
    kept = {call.path for call in trace.calls if all(slot.tensor.data for slot in call.outputs)}
    assert {"Net.layers.1", "Net.layers.1.up", "Net.layers.1.down"} <= kept
    assert "Net.layers.0" not in {call.path for call in trace.calls if call.inputs[0].tensor.data}
    assert trace.calls[4].inputs[0].tensor.data is not None


def test_a_pattern_may_name_a_class(net, tmp_path):
    trace = trace_of(tmp_path, net, torch.randn(2, 4), only=["Linear"])
    assert all(call.outputs[0].tensor.data for call in trace.calls if call.class_name == "Linear")


def test_values_stop_at_the_byte_limit(net, tmp_path):
    trace = trace_of(tmp_path, net, torch.randn(100, 4), max_bytes=9000)
    omitted = [slot.tensor.omitted for call in trace.calls for slot in call.outputs]
    assert "over the byte limit" in omitted
    assert "" in omitted
    assert sum(path.stat().st_size for path in tmp_path.glob("*.safetensors")) < 9000 + 2**19


def test_equal_inputs_have_equal_hashes(net, tmp_path):
    with twinlens.model_addition_debugger_context(net, str(tmp_path), packed=True):
        for value in (1.0, 1.0, 2.0):
            net(torch.full((1, 4), value))
    first, second, third = read_trace(tmp_path).forwards
    assert first.inputs_hash == second.inputs_hash != third.inputs_hash
    assert len(list(tmp_path.glob("*_SUMMARY.json"))) == 3


def test_a_call_that_raised_and_those_around_it_carry_the_error(tmp_path):
    def broken(x):
        raise ValueError("wrong shape")

    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Holder(broken)))
    with pytest.raises(ValueError, match="wrong shape"):
        trace_of(tmp_path, model, torch.ones(1, 2))
    trace = read_trace(tmp_path)
    assert [call.path for call in trace.calls if call.error] == ["Sequential", "Sequential.1", "Sequential.1.0"]
    error = trace.calls[-1].error
    assert (error.type, error.message) == ("ValueError", "wrong shape")
    assert "in broken" in error.traceback
    assert "watch.py" not in error.traceback
    assert trace.forwards[0].status == "raised"
    assert trace.is_complete


def test_nan_and_infinity_pass_through_every_file(tmp_path, read_json):
    trace = trace_of(tmp_path, Holder(lambda x: x * math.inf), torch.tensor([0.0, 1.0]))
    statistics = trace.calls[0].outputs[0].tensor.statistics
    assert (statistics.nans, statistics.positive_infinities) == (1, 1)
    assert math.isnan(statistics.mean)
    written = read_json(tmp_path / "Holder_debug_tree_SUMMARY.json")
    assert (written["outputs"]["nan"], written["outputs"]["inf"]) == (1, 1)


def test_the_packed_file_loads_with_names_that_tell_the_place_in_the_tree(net, tmp_path):
    trace_of(tmp_path, net, torch.randn(2, 4))
    names = load_file(tmp_path / "tensors-00000.safetensors").keys()
    assert "Net.layers.1.up.weight" in names
    assert "Net#0.inputs.x" in names
    assert "Net.layers.0.up#2.outputs" in names


def test_a_folder_that_cannot_be_made_is_named(net, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="file"):
        trace_of(tmp_path / "file", net, torch.randn(2, 4))


KILLED = """
    import os, signal, sys, torch
    from torch import nn
    from twinlens import model_addition_debugger_context

    class Killer(nn.Module):
        def forward(self, x):
            os.kill(os.getpid(), signal.SIGKILL)

    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), Killer()), nn.Linear(4, 4))
    with model_addition_debugger_context(model, sys.argv[1], packed=True):
        model(torch.ones(2, 4))
"""


def test_a_run_that_is_killed_half_way_leaves_a_trace_that_loads(tmp_path):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    trace = read_trace(tmp_path)
    assert not trace.is_complete
    assert trace.forwards[0].status == "unfinished"
    assert [(call.path, call.seconds is None) for call in trace.calls] == [
        ("Sequential", True),
        ("Sequential.0", False),
        ("Sequential.1", True),
        ("Sequential.1.0", False),
        ("Sequential.1.1", True),
    ]
    result = values(trace, trace.calls[3].outputs[0].tensor)
    assert torch.equal(result, values(trace, trace.calls[4].inputs[0].tensor))


WITHOUT_TRANSFORMERS = """
    import sys
    sys.modules["transformers"] = None
    sys.modules["numpy"] = sys.modules["safetensors"] = None
    import torch, twinlens
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout())
    for options in ({}, {"use_repr": False}, {"packed": True}):
        with twinlens.model_addition_debugger_context(model, sys.argv[1], **options):
            model(torch.ones(2, 4))
"""


def test_a_trace_needs_torch_alone(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_TRANSFORMERS), str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert read_trace(tmp_path).info.versions.keys() == {"python", "torch", "twinlens"}


RANK = """
    import sys, torch
    from torch import nn
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
    from twinlens import model_addition_debugger_context

    torch.distributed.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    whole = torch.arange(8.0).reshape(4, 2)

    class Sharded(nn.Module):
        def forward(self, sharded, replicated, plain):
            return sharded

    model = Sharded()
    rank = torch.distributed.get_rank()
    for folder, options in ((sys.argv[1], {"packed": True}), (f"{sys.argv[1]}/debugger", {})):
        with model_addition_debugger_context(model, folder, **options):
            model(
                distribute_tensor(whole, mesh, [Shard(0)]),
                distribute_tensor(whole, mesh, [Replicate()]),
                torch.full((2,), float(rank)),
            )
    torch.distributed.destroy_process_group()
"""


def test_each_rank_writes_its_own_trace_and_reading_merges_them(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(RANK))
    folder = tmp_path / "trace"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(script), str(folder)], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    trace = read_trace(folder)
    assert [(rank.info.rank, rank.info.world_size) for rank in trace.ranks] == [(0, 2), (1, 2)]
    sharded, replicated, plain = (slot.tensor for slot in trace.calls[0].inputs)
    assert sharded.shape == (4, 2)
    assert sharded.statistics.mean == 3.5
    assert [(piece.rank, piece.start, piece.shape) for piece in sharded.pieces] == [
        (0, (0, 0), (2, 2)),
        (1, (2, 0), (2, 2)),
    ]
    rank_one = sharded.pieces[1].data
    raw = (folder / rank_one.file).read_bytes()[rank_one.start : rank_one.stop]
    assert torch.frombuffer(bytearray(raw), dtype=torch.float32).tolist() == [4, 5, 6, 7]
    assert replicated.pieces == ()
    assert values(trace, replicated).flatten().tolist() == list(range(8))
    assert values(trace, plain).tolist() == [0, 0]
