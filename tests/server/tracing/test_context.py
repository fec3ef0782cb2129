"""The drop-in context manager beyond upstream's faults: what it records of whom, and that it leaves all as it was."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from twinlens import model_addition_debugger_context
from twinlens.tracing.record import TraceError


class Step(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Direct(nn.Module):
    """Calls its part by `.forward()`, which no hook sees."""

    def __init__(self):
        super().__init__()
        self.part = nn.Identity()

    def forward(self, x):
        return self.part.forward(x)


def leaves_of(folder, base, kind):
    """The nodes of the JSON file `kind` that have no children, in order."""
    root = json.loads((folder / f"{base}_debug_tree_{kind}.json").read_text())
    return root["children"]


def test_a_part_that_is_called_by_its_forward_is_recorded(tmp_path):
    with model_addition_debugger_context(Direct(), str(tmp_path)) as model:
        model.forward(torch.ones(2))
    (part,) = leaves_of(tmp_path, "Direct", "SUMMARY")
    assert (part["module_path"], part["outputs"]["shape"]) == ("Direct.part", "torch.Size([2])")


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.numpy().__iadd__(1)], ids=["torch", "numpy"])
def test_a_tensor_that_is_written_to_is_recorded_as_it_was_each_time(write, tmp_path):
    def in_place(x):
        write(x)
        return x

    model = nn.Sequential(Step(in_place), Step(in_place))
    with model_addition_debugger_context(model, str(tmp_path)):
        model(torch.zeros(1))
    recorded = [
        (node["inputs"]["args"][0]["value"], node["outputs"]["value"])
        for node in leaves_of(tmp_path, "Sequential", "FULL_TENSORS")
    ]
    numbers = [tuple(float(text[0][8:-2]) for text in pair) for pair in recorded]
    assert numbers == [(0, 1), (1, 2)]


def test_hooks_run_as_before_and_see_the_same(tmp_path):
    seen = []
    linear = nn.Linear(2, 2)
    linear.register_forward_pre_hook(lambda _module, args: (args[0] + 1,))
    linear.register_forward_hook(lambda _module, args, result: seen.append((args[0].clone(), result.clone())))
    model = nn.Sequential(linear)
    hooks = dict(linear._forward_hooks), dict(linear._forward_pre_hooks)
    expected = linear(torch.zeros(1, 2))
    with model_addition_debugger_context(model, str(tmp_path)):
        result = model(torch.zeros(1, 2))
    assert torch.equal(result, expected)
    assert torch.equal(seen[0][0], seen[1][0])
    assert (dict(linear._forward_hooks), dict(linear._forward_pre_hooks)) == hooks
    (node,) = leaves_of(tmp_path, "Sequential", "SUMMARY")
    assert node["inputs"]["args"][0]["min"] == "tensor(1.0000e+00)"  # after the hook that comes first


def test_a_forward_of_the_modules_own_is_there_again(tmp_path):
    model = nn.Sequential(nn.Identity())
    own = lambda x: 2 * x  # noqa: E731  # as a library patches a module
    model[0].forward = own
    with model_addition_debugger_context(model, str(tmp_path)):
        assert model(torch.ones(1)).item() == 2
    assert vars(model[0])["forward"] is own


def test_contexts_of_two_models_nest(tmp_path):
    inner, outer = nn.Sequential(nn.Identity()), nn.Sequential(nn.Identity())
    with (
        model_addition_debugger_context(outer, str(tmp_path / "outer")),
        model_addition_debugger_context(inner, str(tmp_path / "inner")),
    ):
        outer(inner(torch.ones(3)))
    for folder in ("outer", "inner"):
        assert len(leaves_of(tmp_path / folder, "Sequential", "SUMMARY")) == 1
    assert all("forward" not in vars(module) for module in (*inner.modules(), *outer.modules()))


def test_print_options_are_as_before_when_a_forward_raises(tmp_path):
    def broken(x):
        raise ValueError("wrong shape")

    text = repr(torch.tensor([1e-3, 2.5]))
    with (
        pytest.raises(ValueError, match="wrong shape"),
        model_addition_debugger_context(nn.Sequential(Step(broken)), str(tmp_path)) as model,
    ):
        model(torch.rand(3))
    assert repr(torch.tensor([1e-3, 2.5])) == text


def test_a_folder_that_is_a_file_is_refused_before_the_model_is_touched(tmp_path):
    (tmp_path / "taken").write_text("")
    model = nn.Sequential(nn.Identity())
    refused = pytest.raises(TraceError, match="taken: no folder that can be written")
    with refused, model_addition_debugger_context(model, str(tmp_path / "taken")):
        pass
    assert "forward" not in vars(model)


def test_a_second_run_into_a_folder_replaces_the_record_of_the_first(tmp_path):
    model = nn.Sequential(nn.Linear(2, 2))
    with model_addition_debugger_context(model, str(tmp_path), packed=True):
        model(torch.ones(1, 2))
    with model_addition_debugger_context(model, str(tmp_path)):
        model(torch.ones(1, 2))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "Sequential_debug_tree_FULL_TENSORS.json",
        "Sequential_debug_tree_SUMMARY.json",
    ]
