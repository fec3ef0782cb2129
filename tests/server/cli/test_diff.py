"""`twinlens diff` as a person runs it: what it says, its exit codes, and what it makes of damaged traces."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "diffing"))
from traces import inputs, net, write_trace


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from twinlens.cli import main; main()", "diff", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("reference"), net(), inputs())


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = net()
    for layer in model.layers:
        layer.act = nn.SiLU()
    return write_trace(tmp_path_factory.mktemp("faulty"), model, inputs())


def test_equal_traces_agree_with_exit_code_0(reference: Path):
    found = run(reference, reference)
    assert found.returncode == 0
    assert "The two traces agree" in found.stdout


def test_a_fault_is_told_with_exit_code_1(reference: Path, faulty: Path):
    found = run(reference, faulty)
    assert found.returncode == 1
    assert "1. Net.layers.0.act" in found.stdout
    assert "activation-variant: the reference applies GELU (erf), the port SiLU" in found.stdout
    assert "also in    Net.layers.1.act, Net.layers.2.act" in found.stdout


def test_a_layer_with_another_layers_weights_names_whose_they_are(reference: Path, tmp_path: Path):
    model = net()
    model.layers = nn.ModuleList([model.layers[0], model.layers[2], model.layers[1]])
    found = run(reference, write_trace(tmp_path, model, inputs()))
    assert "1. Net.layers.1.up\n" in found.stdout
    assert "up.weight holds the values of the reference's Net.layers.2.up.weight" in found.stdout


def test_a_norm_that_was_left_out_is_missed(reference: Path, tmp_path: Path):
    model = net()
    model.layers[0].norm = nn.Identity()
    found = run(reference, write_trace(tmp_path, model, inputs()))
    assert "the port's norm returns what it is given, the other side's norms it" in found.stdout
    assert "Put the reference's LayerNorm in place of Identity." in found.stdout


@pytest.mark.parametrize("option", ["--rtol", "--atol"])
@pytest.mark.parametrize("value", ["inf", "nan", "-1", "-inf"])
def test_a_tolerance_that_is_no_finite_number_from_0_is_refused(reference: Path, option: str, value: str):
    found = run(reference, reference, option, value)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == f"twinlens: {option} {value} is no tolerance; give a finite number from 0, such as 1e-5\n"


def test_json_has_the_documented_fields(reference: Path, faulty: Path):
    found = run(reference, faulty, "--json", "-")
    report = json.loads(found.stdout, parse_constant=pytest.fail)
    assert report["verdict"] == "differ"
    (origin,) = report["origins"]
    assert (origin["reference"], origin["port"]) == ("Net.layers.0.act", "Net.layers.0.act")
    assert (origin["call"], origin["tensor"]) == (0, "outputs")
    assert origin["error"]["relative"] == pytest.approx(0.2, abs=0.1)
    assert len(origin["error"]["index"]) == 3
    assert origin["causes"][0]["code"] == "activation-variant"
    assert origin["causes"][0]["port"].endswith("traces.py:" + origin["causes"][0]["port"].rpartition(":")[2])
    assert report["unpaired"] == {"reference": [], "port": []}
    verdicts = {pair["port"]: pair["verdict"] for pair in report["pairs"]}
    assert verdicts["Net.layers.0.up"] == "agrees"
    assert verdicts["Net.layers.0.act"] == "originates here"
    assert verdicts["Net.layers.0.down"] == "inherited"


def test_files_are_written_beside_the_report(reference: Path, faulty: Path, tmp_path: Path):
    written = "--json", tmp_path / "new" / "diff.json", "--html", tmp_path / "made" / "diff.html"
    found = run(reference, faulty, *written, cwd=Path(inspect.getfile(net)).parent)
    assert "The two traces differ" in found.stdout
    assert json.loads((tmp_path / "new" / "diff.json").read_text())["verdict"] == "differ"
    page = (tmp_path / "made" / "diff.html").read_text()
    assert "Net.layers.0.act traces.py:" in page
    assert str(Path(inspect.getfile(net)).parent) not in page
    assert str(reference) not in page
    assert "GELU (erf)" in page
    assert "http" not in page


def test_a_tolerance_of_the_users_own_is_taken(reference: Path, faulty: Path):
    assert run(reference, faulty, "--rtol", "1").returncode == 0


def test_other_inputs_are_said_before_the_port_is_blamed(reference: Path, tmp_path: Path):
    other = write_trace(tmp_path, net(), 2 * inputs())
    found = run(reference, other)
    assert found.returncode == 1
    assert "The inputs differ already" in found.stdout
    assert "times 2 in every channel" in found.stdout


def test_two_models_that_have_nothing_to_do_with_each_other(reference: Path, tmp_path: Path):
    torch.manual_seed(0)
    other = write_trace(tmp_path, nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), torch.randn(1, 3, 9, 9))
    found = run(reference, other)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "cannot be compared" in found.stderr


def damaged(source: Path, folder: Path) -> Path:
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_a_missing_tensor_file(reference: Path, tmp_path: Path):
    port = damaged(reference, tmp_path)
    (port / "tensors-00000.safetensors").unlink()
    found = run(reference, port)
    assert found.returncode == 2
    assert "tensors-00000.safetensors cannot be read" in found.stderr
    assert "run the trace again" in found.stderr


def test_a_tensor_file_that_was_cut(reference: Path, tmp_path: Path):
    port = damaged(reference, tmp_path)
    file = port / "tensors-00000.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    found = run(reference, port)
    assert found.returncode == 2
    assert "tensors-00000.safetensors is cut short" in found.stderr


def test_a_tensor_of_another_shape_than_the_record_says(reference: Path, tmp_path: Path):
    port = damaged(reference, tmp_path)
    record = port / "trace.jsonl"
    record.write_text(record.read_text().replace('"shape":[2,5,16]', '"shape":[2,5,17]'))
    found = run(reference, port)
    assert found.returncode == 2
    assert "float32 [2, 5, 17]" in found.stderr


def test_a_half_written_trace_is_compared_as_far_as_it_goes(reference: Path, tmp_path: Path):
    port = damaged(reference, tmp_path)
    record = port / "trace.jsonl"
    text = record.read_bytes()
    record.write_bytes(text[: text.index(b'"path":"Net.layers.2","class":') + 5])
    found = run(reference, port)
    assert found.returncode == 0, found.stderr
    assert "the port's trace was not finished" in found.stdout
    assert "no difference up to where the port's trace ends" in found.stdout


class Raising(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such view")


def test_a_port_that_raises_does_not_agree(reference: Path, tmp_path: Path):
    model = net()
    model.layers[2].act = Raising()
    with pytest.raises(RuntimeError, match="no such view"):
        write_trace(tmp_path, model, inputs())
    found = run(reference, tmp_path)
    assert found.returncode == 1
    assert (
        "The two traces differ: the port's forward raised in Net.layers.2.act, the reference's did not" in found.stdout
    )


def test_an_argument_that_is_no_trace(reference: Path, tmp_path: Path):
    found = run(reference, tmp_path)
    assert found.returncode == 2
    assert f"{tmp_path} holds no trace" in found.stderr
    found = run(reference, tmp_path / "absent")
    assert found.returncode == 2
    assert "does not exist" in found.stderr


def test_nan_in_every_number_is_said_and_does_not_hang(tmp_path: Path):
    values = torch.full((2, 5, 8), torch.nan)
    folders = [write_trace(tmp_path / name, net(), values) for name in ("a", "b")]
    found = run(*folders, "--json", "-")
    json.loads(found.stdout, parse_constant=pytest.fail)
    assert found.returncode == 2
    assert "cannot be compared" in found.stderr


def test_nan_in_the_port_alone_is_an_origin(reference: Path, tmp_path: Path):
    model = net()
    with torch.no_grad():
        model.layers[1].down.weight[0, 0] = torch.nan
    found = run(reference, write_trace(tmp_path, model, inputs()), "--json", "-")
    report = json.loads(found.stdout, parse_constant=pytest.fail)
    assert report["origins"][0]["port"] == "Net.layers.1.down"
    assert report["origins"][0]["error"]["relative"] == "Infinity"


def test_a_map_file_pairs_what_nothing_else_would(reference: Path, tmp_path: Path):
    (tmp_path / "map.toml").write_text('[[pair]]\nreference = "layers.{i}.up"\nport = "layers.{i}.down"\n')
    found = run(reference, reference, "--map", tmp_path / "map.toml", "--json", "-")
    pairs = json.loads(found.stdout)["pairs"]
    assert {(p["reference"], p["port"], p["how"]) for p in pairs if p["how"] == "map"} == {
        (f"Net.layers.{i}.up", f"Net.layers.{i}.down", "map") for i in range(3)
    }


def test_entries_of_a_map_file_that_name_nothing_are_told_and_change_no_exit_code(reference: Path, tmp_path: Path):
    (tmp_path / "map.toml").write_text(
        """
        [[pair]]
        reference = "layers.{i}.up"
        port = "layers.{i}.up"

        [[pair]]
        reference = "Net.encoder"
        port = "decoder.{i}"

        [[pair]]
        reference = "layers.0.up"
        port = "layers.0.down"

        [[apart]]
        port = "pooler"
        """
    )
    notes = [
        (
            "the map file's pair of Net.encoder with decoder.{i} has no effect: the reference has no module "
            "Net.encoder and the port has no module decoder.{i}"
        ),
        (
            "the map file's pair of layers.0.up with layers.0.down has no effect: its two sides never fit, or another "
            "entry took these modules"
        ),
        "the map file sets pooler apart without effect: the port has no such module",
    ]
    found = run(reference, reference, "--map", tmp_path / "map.toml")
    assert found.returncode == 0
    assert [line.removeprefix("note       ") for line in found.stdout.splitlines() if "map file" in line] == notes
    found = run(reference, reference, "--map", tmp_path / "map.toml", "--json", "-")
    assert json.loads(found.stdout)["notes"] == notes


def test_a_map_file_that_does_not_parse(reference: Path, tmp_path: Path):
    (tmp_path / "map.toml").write_text("[[pair]\n")
    found = run(reference, reference, "--map", tmp_path / "map.toml")
    assert found.returncode == 2
    assert "map.toml is not TOML" in found.stderr


@pytest.mark.parametrize("use_repr", [True, False])
def test_what_transformers_own_debugger_wrote(tmp_path: Path, use_repr: bool):
    from transformers.model_debugging_utils import model_addition_debugger_context

    folders = []
    for name, activation in (("a", nn.GELU()), ("b", nn.SiLU())):
        model = net()
        for layer in model.layers:
            layer.act = activation
        with model_addition_debugger_context(model, str(tmp_path / name), do_prune_layers=False, use_repr=use_repr):
            model(inputs())
        folders.append(tmp_path / name)
    found = run(folders[0], folders[1] / "Net_debug_tree_SUMMARY.json", "--json", "-")
    assert found.returncode == 1, found.stderr
    assert json.loads(found.stdout)["origins"][0]["port"] == "Net.layers.0.act"
    assert run(folders[0], folders[0]).returncode == 0


def test_a_path_that_leads_out_of_the_trace_is_refused(tmp_path: Path):
    tree = {
        "module_path": "Net",
        "inputs": {
            "args": [{"shape": "torch.Size([2])", "dtype": "torch.float32", "value": "./../../etc/passwd"}],
            "kwargs": {},
        },
        "outputs": None,
    }
    (tmp_path / "Net_debug_tree_FULL_TENSORS.json").write_text(json.dumps(tree))
    found = run(tmp_path, tmp_path)
    assert found.returncode == 2
    assert "outside of its folder" in found.stderr
    assert "root:" not in found.stderr
