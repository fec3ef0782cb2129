"""What the upstream context gets wrong: each check fails on transformers' own and passes on ours."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

transformers = pytest.importorskip("transformers")

import twinlens  # noqa: E402


class Wrapped(nn.Module):
    """A root that hands its argument to one module."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def summary(folder, base):
    return json.loads((folder / f"{base}_debug_tree_SUMMARY.json").read_text(), parse_constant=pytest.fail)


def input_of_inner(context, folder, value, **options):
    with context(Wrapped(nn.Identity()), str(folder), **options) as model:
        model(value)
    return summary(folder, "Wrapped")["children"][0]["inputs"]["args"][0]


def the_model_has_its_own_forwards_again(context, folder):
    model = Wrapped(nn.Linear(2, 2))
    before = {module: dict(vars(module)) for module in model.modules()}
    with context(model, str(folder)):
        model(torch.ones(1, 2))
    assert {module: dict(vars(module)) for module in model.modules()} == before


def a_later_patch_of_the_class_takes_effect(context, folder):
    class Inner(nn.Module):
        def forward(self, x):
            return x

    model = Wrapped(Inner())
    with context(model, str(folder)):
        model(torch.ones(1))
    Inner.forward = lambda self, x: x + 1
    assert model(torch.ones(1)).item() == 2


def print_options_are_as_before(context, folder):
    torch.set_printoptions(precision=3, linewidth=70)
    text = repr(torch.tensor([1.0, 2.5]))
    with context(Wrapped(nn.Identity()), str(folder)) as model:
        model(torch.rand(3))
    assert repr(torch.tensor([1.0, 2.5])) == text


def a_forward_that_raises_leaves_a_partial_trace(context, folder):
    def broken(x):
        raise ValueError("wrong shape")

    model = nn.Sequential(nn.Linear(2, 2), Function(broken), nn.Linear(2, 2))
    with pytest.raises(ValueError, match="wrong shape"), context(model, str(folder)):
        model(torch.ones(1, 2))
    linear, raised = summary(folder, "Sequential")["children"]
    assert linear["outputs"]["shape"] == "torch.Size([1, 2])"
    assert raised["module_path"] == "Sequential.1"
    assert raised["error"] == "ValueError: wrong shape"
    assert "error" not in linear


def an_interrupted_forward_leaves_a_partial_trace(context, folder):
    def interrupted(x):
        raise KeyboardInterrupt

    model = nn.Sequential(nn.Linear(2, 2), Function(interrupted))
    with pytest.raises(KeyboardInterrupt), context(model, str(folder)):
        model(torch.ones(1, 2))
    assert summary(folder, "Sequential")["children"][1]["error"].startswith("KeyboardInterrupt")
    assert all("forward" not in vars(module) for module in model.modules())


def every_call_of_one_module_is_kept(context, folder):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.twice = Function(lambda x: 2 * x)

        def forward(self, x):
            return self.twice(self.twice(x))

    with context(Twice(), str(folder), use_repr=False) as model:
        model(torch.ones(1))
    full = json.loads((folder / "Twice_debug_tree_FULL_TENSORS.json").read_text())
    files = [child["outputs"]["value"] for child in full["children"]]
    assert [load_file(folder / file)["data"].item() for file in files] == [2, 4]


def every_forward_of_one_context_is_kept(context, folder):
    with context(Wrapped(nn.Identity()), str(folder)) as model:
        model(torch.ones(1))
        model(torch.ones(1, 2))
        model(torch.ones(1, 2, 3))
    shapes = [
        json.loads(path.read_text())["inputs"]["args"][0]["shape"] for path in sorted(folder.glob("*_SUMMARY.json"))
    ]
    assert shapes == ["torch.Size([1])", "torch.Size([1, 2])", "torch.Size([1, 2, 3])"]


def the_root_runs_without_gradients(context, folder):
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x * self.weight

    with context(Root(), str(folder)) as model:
        assert not model(torch.ones(1)).requires_grad


def integers_have_statistics(context, folder):
    described = input_of_inner(context, folder, torch.tensor([1, 5, 9]))
    assert (described["min"], described["max"]) == ("tensor(1)", "tensor(9)")
    assert described["mean"] == "tensor(5.0000e+00, dtype=torch.float64)"


def booleans_have_statistics(context, folder):
    described = input_of_inner(context, folder, torch.tensor([True, False, False, False]))
    assert described["mean"] == "tensor(2.5000e-01, dtype=torch.float64)"
    assert described["max"] == "tensor(True)"


def float64_has_statistics(context, folder):
    described = input_of_inner(context, folder, torch.tensor([1.5, 2.5], dtype=torch.float64))
    assert described["mean"] == "tensor(2.0000e+00, dtype=torch.float64)"


def float8_has_statistics(context, folder):
    described = input_of_inner(context, folder, torch.tensor([1.5, 2.5]).to(torch.float8_e4m3fn))
    assert described["mean"] == "tensor(2.0000e+00, dtype=torch.float64)"


def complex_numbers_have_statistics_of_their_modulus(context, folder):
    described = input_of_inner(context, folder, torch.tensor([3 + 4j, 0j]))
    assert described["max"] == "tensor(5.0000e+00, dtype=torch.float64)"


def an_empty_tensor_is_recorded(context, folder):
    assert input_of_inner(context, folder, torch.empty(0, 3))["shape"] == "torch.Size([0, 3])"


def a_meta_tensor_is_recorded_where_values_go_to_files(context, folder):
    described = input_of_inner(context, folder, torch.empty(2, device="meta"), use_repr=False)
    assert described["shape"] == "torch.Size([2])"


def a_sparse_tensor_is_recorded_where_values_go_to_files(context, folder):
    described = input_of_inner(context, folder, torch.eye(2).to_sparse(), use_repr=False)
    assert described["shape"] == "torch.Size([2, 2])"


def nan_and_infinity_are_counted(context, folder):
    described = input_of_inner(context, folder, torch.tensor([1.0, torch.nan, torch.inf, -torch.inf]))
    assert (described["nan"], described["inf"]) == (1, 2)


def keys_that_are_no_strings_are_recorded(context, folder):
    with context(Wrapped(Function(lambda states: states)), str(folder)) as model:
        model({("query", 0): torch.ones(1)})
    (described,) = summary(folder, "Wrapped")["inputs"]["args"]
    assert described["('query', 0)"]["shape"] == "torch.Size([1])"


@dataclasses.dataclass
class Pair:
    states: torch.Tensor
    count: int


def a_dataclass_gives_its_tensors(context, folder):
    with context(Wrapped(Function(lambda x: Pair(x, 3))), str(folder)) as model:
        model(torch.ones(2))
    (child,) = summary(folder, "Wrapped")["children"]
    assert (child["outputs"]["states"]["shape"], child["outputs"]["count"]) == ("torch.Size([2])", "3")


def a_key_does_not_lead_out_of_the_folder(context, folder):
    inside = folder / "trace"
    with context(Wrapped(Function(lambda states: states["../../out"])), str(inside), use_repr=False) as model:
        model({"../../out": torch.ones(1)})
    assert [path for path in folder.rglob("*.safetensors") if path.parent != inside] == []
    assert any("out" in path.name for path in inside.iterdir())


def a_tensor_of_a_dtype_that_safetensors_has_no_name_for_goes_to_its_file(context, folder):
    number = torch.tensor([1 + 2j], dtype=torch.complex128)
    input_of_inner(context, folder, number, use_repr=False)
    (data,) = load_file(folder / "Wrapped.inner_inputs_args_0.safetensors").values()
    assert data.view(torch.complex128).item() == 1 + 2j


def a_compiled_model_is_traced_under_its_own_name(context, folder):
    model = torch.compile(Wrapped(nn.Linear(2, 2)), backend="eager")
    with context(model, str(folder)):
        model(torch.ones(1, 2))
    (child,) = summary(folder, "Wrapped")["children"]
    assert child["module_path"] == "Wrapped.inner"


def a_call_of_a_part_outside_the_root_is_recorded(context, folder):
    with context(Wrapped(nn.Linear(2, 2)), str(folder)) as model:
        model.inner(torch.ones(1, 2))
    assert summary(folder, "Wrapped.inner")["outputs"]["shape"] == "torch.Size([1, 2])"


def the_model_keeps_no_attribute_of_the_trace(context, folder):
    model = Wrapped(nn.Identity())
    with context(model, str(folder)):
        model(torch.ones(1))
    assert not [name for name in vars(model) if "debug" in name or "call_tree" in name]


CHECKS = [
    the_model_has_its_own_forwards_again,
    a_later_patch_of_the_class_takes_effect,
    the_model_keeps_no_attribute_of_the_trace,
    print_options_are_as_before,
    a_forward_that_raises_leaves_a_partial_trace,
    an_interrupted_forward_leaves_a_partial_trace,
    every_call_of_one_module_is_kept,
    every_forward_of_one_context_is_kept,
    the_root_runs_without_gradients,
    integers_have_statistics,
    booleans_have_statistics,
    float64_has_statistics,
    float8_has_statistics,
    complex_numbers_have_statistics_of_their_modulus,
    an_empty_tensor_is_recorded,
    a_meta_tensor_is_recorded_where_values_go_to_files,
    a_sparse_tensor_is_recorded_where_values_go_to_files,
    nan_and_infinity_are_counted,
    keys_that_are_no_strings_are_recorded,
    a_dataclass_gives_its_tensors,
    a_key_does_not_lead_out_of_the_folder,
    a_tensor_of_a_dtype_that_safetensors_has_no_name_for_goes_to_its_file,
    a_compiled_model_is_traced_under_its_own_name,
    a_call_of_a_part_outside_the_root_is_recorded,
]


@pytest.fixture(autouse=True)
def printing_as_by_default():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_ours(check, tmp_path):
    check(twinlens.model_addition_debugger_context, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_upstream_fails(check, tmp_path):
    with pytest.raises(Exception):  # noqa: B017  # in which way each one fails is upstream's affair
        check(transformers.model_addition_debugger_context, tmp_path)
