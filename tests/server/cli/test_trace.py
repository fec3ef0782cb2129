"""`twinlens trace`, as a person types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from twinlens.tracing.job import Failed, Finished, Job, Progress, from_line
from twinlens.tracing.reading import read_trace

RECIPES = """
    import ctypes
    import time
    import torch
    import twinlens

    class Noisy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)

        def forward(self, x):
            print("a print of the model")
            ctypes.CDLL(None).puts(b"a print from C")
            return self.fc(x)

    class Raising(torch.nn.Module):
        def forward(self, x):
            raise ValueError("wrong shape")

    class Slow(torch.nn.Module):
        def forward(self, x):
            time.sleep(60)

    @twinlens.recipe("Noisy")
    def noisy():
        return Noisy(), torch.ones(2, 4)

    @twinlens.recipe("Raising")
    def raising():
        return torch.nn.Sequential(torch.nn.Linear(4, 4), Raising()), torch.ones(2, 4)

    @twinlens.recipe("Slow")
    def slow():
        return torch.nn.Sequential(torch.nn.Linear(4, 4), Slow()), torch.ones(2, 4)

    @twinlens.recipe()
    def dropping():
        return torch.nn.Dropout(0.25), torch.ones(2, 4)

    @twinlens.recipe()
    def leaving():
        raise SystemExit(3)

    class Leaving(torch.nn.Module):
        def forward(self, x):
            raise SystemExit("no GPU")

    @twinlens.recipe()
    def leaving_late():
        return torch.nn.Sequential(torch.nn.Linear(4, 4), Leaving()), torch.ones(2, 4)

    @twinlens.recipe()
    def no_weights():
        raise FileNotFoundError("weights.bin is missing")
"""


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / ".twinlens" / "recipes"
    folder.mkdir(parents=True)
    (folder / "nets.py").write_text(textwrap.dedent(RECIPES))
    return tmp_path


def run(workspace, *arguments):
    code = "from twinlens.cli import main; main()"
    command = [sys.executable, "-c", code, "trace", *arguments]
    return subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)


def test_the_traces_folder_is_all_that_goes_to_stdout(workspace):
    done = run(workspace, "noisy")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    trace = read_trace(workspace / line)
    assert [call.path for call in trace.calls] == ["Noisy", "Noisy.fc"]
    assert (trace.info.target, trace.info.recipe, trace.info.seed) == ("noisy", "nets.py::noisy", 673)
    assert line.startswith(str(workspace / ".twinlens" / "traces" / "Noisy-"))
    assert (workspace / ".twinlens" / "traces" / ".gitignore").read_text() == "*\n"
    assert "a print of the model" in done.stderr
    assert "a print from C" in done.stderr
    assert "running the recipe nets.py::noisy" in done.stderr


def test_training_mode_is_kept_and_warned_of_where_it_changes_the_numbers(workspace):
    done = run(workspace, "dropping")
    assert done.returncode == 0
    assert read_trace(workspace / done.stdout.strip()).info.training
    assert "twinlens: Dropout is traced in training mode, as nets.py::dropping made it" in done.stderr
    assert "(Dropout drops 25% of its input); call .eval() on the model there" in done.stderr
    assert "training mode" not in run(workspace, "noisy").stderr


def test_options_say_where_and_what_is_kept(workspace):
    arguments = ["noisy", "--output-dir", "out", "--seed", "3", "--dtype", "bfloat16", "--only", "Linear"]
    for expected in ("out", "out-2"):
        done = run(workspace, *arguments)
        assert done.stdout.splitlines() == [str(workspace / expected)], done.stderr
    first, second = (read_trace(workspace / folder) for folder in ("out", "out-2"))
    assert first.info.dtype == "bfloat16"
    assert first.calls[1].outputs[0].tensor.statistics == second.calls[1].outputs[0].tensor.statistics
    assert first.parameters[0].fingerprint == second.parameters[0].fingerprint
    assert first.calls[1].outputs[0].tensor.data is not None


def test_an_error_of_the_model_is_told_by_its_own_frames_and_the_trace_is_kept(workspace):
    done = run(workspace, "raising")
    assert done.returncode == 1
    trace = read_trace(workspace / done.stdout.strip())
    assert trace.calls[-1].error.message == "wrong shape"
    assert 'nets.py", line' in done.stderr
    assert "ValueError: wrong shape" in done.stderr
    assert "twinlens/tracing" not in done.stderr
    assert "torch/nn" not in done.stderr


def test_a_forward_that_ends_python_is_told_as_an_error_of_the_model_and_the_trace_is_kept(workspace):
    done = run(workspace, "leaving_late")
    assert done.returncode == 1
    assert done.stderr.endswith("twinlens: the forward raised SystemExit: sys.exit('no GPU') was called\n")
    assert read_trace(workspace / done.stdout.strip()).calls[-1].error.type == "SystemExit"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["nobody"],
            "slow, dropping, leaving, leaving_late, no_weights; name a recipe, file.py::Class or module:Class.",
        ),
        (["nosy"], "; did you mean noisy?"),
        (["noisy", "--only", "Liner"], "Liner matches no module of"),
        (["no_weights"], "FileNotFoundError: weights.bin is missing, when running the recipe nets.py::no_weights."),
        (["leaving"], "SystemExit: sys.exit(3) was called, when running the recipe nets.py::leaving."),
        (["noisy", "--dtype", "float31"], "float31 is no floating dtype of torch"),
        (["noisy", "--device", "nowhere"], "The device nowhere cannot be used here"),
        (["noisy", "--max-bytes", "many"], "--max-bytes many is no size"),
        (["noisy", "--output-dir", ".twinlens/recipes/nets.py"], "nets.py cannot be made"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(workspace, arguments, sentence):
    done = run(workspace, *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr.splitlines()[-1]
    assert done.stdout == ""
    assert "twinlens/tracing" not in done.stderr


def start(workspace, target, code="from twinlens.tracing.run import main; main()"):
    job = Job(target=target, root=str(workspace), folder=str(workspace / "out"))
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    process.stdin.write(f"{job.to_json()}\n")
    process.stdin.flush()
    return process


def frames(process):
    return [from_line(line) for line in process.stdout]


def test_the_process_of_the_editor_answers_in_frames(workspace):
    with start(workspace, "noisy") as process:
        answered = frames(process)
        printed = process.stderr.read()
    assert answered[-1] == Finished(str(workspace / "out"))
    assert Progress("running", "Noisy.fc", 1) in answered
    assert "a print of the model" in printed


def test_a_process_that_is_killed_in_the_forward_leaves_a_trace_that_loads(workspace):
    with start(workspace, "slow") as process:
        for line in process.stdout:
            if from_line(line).stage == "running":
                break
        deadline = time.monotonic() + 30
        entered = '"path":"Sequential.1","class"'
        while time.monotonic() < deadline and entered not in (workspace / "out" / "trace.jsonl").read_text():
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    trace = read_trace(workspace / "out")
    assert [(call.path, call.seconds is None) for call in trace.calls] == [
        ("Sequential", True),
        ("Sequential.0", False),
        ("Sequential.1", True),
    ]


def test_an_interpreter_without_torch_says_what_to_install(workspace):
    code = "import sys; sys.modules['torch'] = None; from twinlens.tracing.run import main; main()"
    with start(workspace, "noisy", code) as process:
        (failed,) = frames(process)
    assert isinstance(failed, Failed)
    assert failed.reason == "no torch"
    assert f"{sys.executable} -m pip install torch" in failed.message


def test_the_process_ends_when_whoever_started_it_is_gone(workspace):
    with start(workspace, "slow") as process:
        for line in process.stdout:
            if from_line(line).stage == "running":
                break
        process.stdin.close()
        assert process.wait(timeout=10) == 1


def test_a_line_that_is_no_frame_is_refused():
    with pytest.raises(ValueError, match="not a frame"):
        from_line(json.dumps({"kind": "news"}))
