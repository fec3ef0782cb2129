"""What of a file can be traced, and the list of a workspace's traces."""

from __future__ import annotations

import textwrap

import pytest
import torch
import twinlens
from twinlens.tracing.folders import new_trace_folder
from twinlens.tracing.listing import list_traces
from twinlens.tracing.traceable import Traceable, traceables


def found(text):
    return [(item.name, item.forward_line) for item in traceables(textwrap.dedent(text))]


def test_modules_with_a_forward_of_their_own_or_a_base_of_the_file():
    text = """
        class Base(nn.Module):
            def forward(self, x):
                return x

        class Derived(Base):
            pass

        class Silent(nn.Module):
            pass

        class Ported(LlamaPreTrainedModel):
            def __init__(self):
                pass

            def forward(self, x):
                return x
    """
    assert found(text) == [("Base", 3), ("Derived", None), ("Ported", 16)]


def test_what_is_no_module_is_left_out():
    text = """
        class Config(PreTrainedConfig):
            def forward(self, x): ...

        class Round(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): ...

        class Robot:
            def forward(self, steps): ...

        def forward(x): ...
    """
    assert found(text) == []


def test_classes_that_inherit_from_each_other_end_the_search():
    assert found("class A(B): ...\nclass B(A):\n    def forward(self): ...") == []


def test_recipes_with_what_they_are_for():
    text = """
        @twinlens.recipe(target="LumenModel", seed=1)
        def one(): ...

        @recipe(LumenMLP)
        def two(): ...

        @recipe()
        def three(): ...

        @other
        def four(): ...
    """
    recipes = [(item.name, item.is_recipe, item.target) for item in traceables(textwrap.dedent(text))]
    assert recipes == [("one", True, "LumenModel"), ("two", True, "LumenMLP"), ("three", True, "")]


def test_the_column_is_that_of_the_name():
    assert traceables("class Net(nn.Module):\n    def forward(self): ...") == [Traceable("Net", 1, 6, False, 2)]


def test_a_text_that_does_not_parse_raises():
    with pytest.raises(SyntaxError):
        traceables("class (")


class Raising(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no")


def test_the_traces_of_a_workspace_are_listed_newest_first_with_what_became_of_them(tmp_path):
    folders = [new_trace_folder(tmp_path, "Net", asked=None) for _ in range(1)]
    with twinlens.model_addition_debugger_context(torch.nn.Linear(2, 2), str(folders[0]), packed=True) as model:
        model(torch.ones(1, 2))
    raised = new_trace_folder(tmp_path, "Raising", asked=None)
    with (
        pytest.raises(ValueError, match="no"),
        twinlens.model_addition_debugger_context(Raising(), str(raised), packed=True) as model,
    ):
        model(torch.ones(1, 2))
    killed = new_trace_folder(tmp_path, "Killed", asked=None)
    lines = (folders[0] / "trace.jsonl").read_text().splitlines(keepends=True)
    (killed / "trace.jsonl").write_text("".join(lines[:5]) + lines[5][:20])
    broken = new_trace_folder(tmp_path, "Broken", asked=None)
    (broken / "trace.jsonl").write_text("{}\n")

    entries = {entry.folder: entry for entry in list_traces([tmp_path])}
    complete = entries[folders[0]]
    assert (complete.status, complete.info.class_name, complete.info.dtype) == ("complete", "Linear", "float32")
    assert complete.seconds > 0
    assert complete.bytes == sum(file.stat().st_size for file in folders[0].iterdir())
    assert complete.summary == folders[0] / "Linear_debug_tree_SUMMARY.json"
    assert (entries[raised].status, entries[raised].error) == ("raised", "ValueError: no")
    assert entries[killed].status == "unfinished"
    assert entries[broken].status == "unreadable"
    assert "the first line is not that of a trace" in entries[broken].error


def test_a_folder_that_holds_a_trace_is_never_used_again(tmp_path):
    first = new_trace_folder(tmp_path, "Net", asked=tmp_path / "out")
    (first / "trace.jsonl").write_text("")
    assert new_trace_folder(tmp_path, "Net", asked=tmp_path / "out") == tmp_path / "out-2"
