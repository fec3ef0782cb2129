"""Capturing under `torch.compile` and `torch.export`, and on models of which a part is compiled."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from twinlens import capture_outputs

from .conftest import Block, define_model
from .test_capture_outputs import build


def compiled(model, **options):
    torch._dynamo.reset()
    return torch.compile(model, backend="eager", **options)


def equal(ours, theirs):
    return len(ours) == len(theirs) and all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("asked_before", [False, True])
def test_compiled_outputs_equal_eager_ones(ours, inputs, fullgraph, asked_before):
    # transformers' first capture under fullgraph=True fails: its lock breaks the graph.
    model = build(ours)
    eager = build(ours)(inputs, output_hidden_states=True, output_attentions=True)
    if asked_before:
        model(inputs, output_hidden_states=True)
    outputs = compiled(model, fullgraph=fullgraph)(inputs, output_hidden_states=True, output_attentions=True)
    assert equal(outputs.hidden_states, eager.hidden_states)
    assert equal(outputs.attentions, eager.attentions)


def test_a_compiled_model_can_be_asked_after_it_ran_without(ours, inputs):
    model = compiled(build(ours), fullgraph=True)
    assert model(inputs).hidden_states is None
    assert len(model(inputs, output_hidden_states=True).hidden_states) == 4
    assert model(inputs).hidden_states is None


def test_a_model_compiled_in_place_collects(ours, inputs):
    torch._dynamo.reset()
    model = build(ours)
    model.compile(backend="eager", fullgraph=True)
    assert len(model(inputs, output_hidden_states=[-1]).hidden_states) == 4


def test_a_selection_is_followed_in_compiled_code(ours, inputs):
    states = compiled(build(ours), fullgraph=True)(inputs, output_hidden_states=[1, -1]).hidden_states
    assert [state is not None for state in states] == [False, True, False, True]


def test_compiled_code_keeps_threads_apart(ours):
    # transformers shares one variable between all threads that run compiled code, and says so.
    model = compiled(build(ours, tie=False), fullgraph=True)
    model(torch.zeros(1, 3, 4), output_hidden_states=True)
    wrong = []
    start = threading.Barrier(4)

    def run(number: int) -> None:
        mine = torch.full((1, 3, 4), float(number))
        start.wait()
        for _ in range(20):
            states = model(mine, output_hidden_states=True).hidden_states
            if len(states) != 4 or not torch.equal(states[0], mine):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Layered(nn.Module):
    """Two layers, of which a test compiles the first."""

    _can_record_outputs = {"hidden_states": Block}

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])

    @capture_outputs
    def forward(self, inputs, **kwargs):
        for layer in self.layers:
            inputs = layer(inputs)
        return {"last_hidden_state": inputs}


def test_a_compiled_layer_is_recorded(inputs):
    torch._dynamo.reset()
    model = Layered().eval()
    plain = model.layers[0]
    model.layers[0] = torch.compile(plain, backend="eager")
    model(inputs)
    states = model(inputs, output_hidden_states=True)["hidden_states"]
    assert len(states) == 3
    assert torch.equal(states[1], plain(inputs))


def test_hooks_inside_a_part_that_was_compiled_before_are_warned_of(inputs):
    torch._dynamo.reset()
    model = Layered().eval()
    model.layers[0].compile(backend="eager")
    with pytest.warns(UserWarning, match=r"a part of Layered was compiled before .* torch\.compiler\.reset"):
        states = model(inputs, output_hidden_states=True)["hidden_states"]
    assert len(states) == 3


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_returns_what_was_collected(inputs, strict):
    model = Layered().eval()
    with torch.no_grad():
        program = torch.export.export(model, (inputs,), {"output_hidden_states": True}, strict=strict)
        exported = program.module()(inputs, output_hidden_states=True)
        assert equal(exported["hidden_states"], model(inputs, output_hidden_states=True)["hidden_states"])


def test_a_transformers_output_can_be_compiled_and_exported(inputs):
    outputs = pytest.importorskip("transformers.modeling_outputs")
    from .conftest import ours

    side = ours()
    side.output = outputs.BaseModelOutput
    model = define_model(side)(side.make_config()).eval()
    eager = model(inputs, output_hidden_states=True, output_attentions=True)
    again = compiled(model, fullgraph=True)(inputs, output_hidden_states=True, output_attentions=True)
    assert equal(eager.hidden_states, again.hidden_states)
    with torch.no_grad():
        program = torch.export.export(model, (inputs,), {"output_hidden_states": True})
    assert equal(eager.hidden_states, program.module()(inputs, output_hidden_states=True).hidden_states)
