"""Ctrl-C ends every command with exit code 130 and one line, wherever it comes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from twinlens.tracing.reading import read_trace

INTERRUPTED_AT_AN_IMPORT = """
import signal
import sys


class Interrupting:
    def find_spec(self, name, *_rest):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)


sys.meta_path.insert(0, Interrupting())
from twinlens.cli import main

main()
"""

RECIPES = """
    import signal
    import torch
    import twinlens

    class Interrupting(torch.nn.Module):
        def forward(self, x):
            signal.raise_signal(signal.SIGINT)

    @twinlens.recipe()
    def early():
        signal.raise_signal(signal.SIGINT)

    @twinlens.recipe()
    def late():
        return torch.nn.Sequential(torch.nn.Linear(4, 4), Interrupting()), torch.ones(2, 4)
"""


def run(code, *arguments, cwd):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", ["check", "detect", "diff", "scan-skips", "trace"])
@pytest.mark.parametrize("module", ["typer", "twinlens.cli.app"])
def test_while_the_command_line_is_imported(tmp_path, command, module):
    done = run(INTERRUPTED_AT_AN_IMPORT.format(module=module), command, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "twinlens: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (["check", "."], "twinlens.checks.engine"),
        (["detect", "--modeling-file", "modeling_x.py"], "twinlens.source.library"),
        (["diff", "a", "b"], "twinlens.diffing.report"),
        (["scan-skips"], "twinlens.skips.report"),
    ],
)
def test_while_the_command_runs(tmp_path, arguments, module):
    (tmp_path / "modeling_x.py").write_text("class X: ...\n")
    done = run(INTERRUPTED_AT_AN_IMPORT.format(module=module), *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "twinlens: interrupted\n")


def traced(recipe, folder):
    (folder / ".twinlens" / "recipes").mkdir(parents=True)
    (folder / ".twinlens" / "recipes" / "nets.py").write_text(textwrap.dedent(RECIPES))
    return run("from twinlens.cli import main; main()", "trace", recipe, cwd=folder)


def test_before_the_forward_it_says_that_there_is_no_trace(tmp_path):
    done = traced("early", tmp_path)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == ("twinlens: interrupted; there is no trace, since the forward had not begun")
    assert not (tmp_path / ".twinlens" / "traces").exists()


def test_in_the_forward_it_names_the_folder_that_holds_the_trace_up_to_there(tmp_path):
    done = traced("late", tmp_path)
    assert done.returncode == 130
    said, folder = done.stderr.splitlines()[-1].split(" in ")
    assert said == "twinlens: interrupted; the trace is kept up to there"
    assert [call.path for call in read_trace(tmp_path / folder).calls] == [
        "Sequential",
        "Sequential.0",
        "Sequential.1",
    ]
