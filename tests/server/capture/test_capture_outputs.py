"""What `capture_outputs` collects and how it returns it: documented for transformers, and so tested against both."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from .conftest import Attention, Block, CrossBlock, define_model, expected_states


def build(side, config=None, **options):
    torch.manual_seed(0)
    return define_model(side, **options)(side.make_config(**(config or {}))).eval()


def same(ours, theirs):
    return len(ours) == len(theirs) and all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_nothing_is_collected_when_nothing_is_asked_for(either, inputs):
    outputs = build(either)(inputs)
    assert outputs.hidden_states is None
    assert outputs.attentions is None


def test_hidden_states_begin_with_the_input_and_end_with_the_normalised_state(either, inputs):
    model = build(either)
    outputs = model(inputs, output_hidden_states=True)
    states = expected_states(model, inputs)
    assert same(outputs.hidden_states, [*states[:-1], model.norm(states[-1])])
    assert isinstance(outputs.hidden_states, tuple)


def test_attentions_are_the_second_element_of_what_attention_returns(either, inputs):
    model = build(either)
    outputs = model(inputs, output_attentions=True)
    weights = [layer.attn(state)[1] for layer, state in zip(model.layers, expected_states(model, inputs), strict=False)]
    assert same(outputs.attentions, weights)


@pytest.mark.parametrize(
    ("decorator", "config", "normalised"),
    [(None, None, True), (True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_the_configuration_overrides_how_the_decorator_ties_the_last_state(
    either, inputs, decorator, config, normalised
):
    model = build(either, {} if config is None else {"tie_last_hidden_states": config}, tie=decorator)
    outputs = model(inputs, output_hidden_states=True)
    last = outputs.last_hidden_state if normalised else expected_states(model, inputs)[-1]
    assert torch.equal(outputs.hidden_states[-1], last)


def test_flags_come_from_the_configuration_unless_the_call_gives_them(either, inputs):
    model = build(either, {"output_hidden_states": True})
    assert len(model(inputs).hidden_states) == 4
    assert model(inputs, output_hidden_states=False).hidden_states is None


def test_return_dict_false_gives_a_tuple_without_the_empty_fields(either, inputs):
    model = build(either)
    plain = model(inputs, return_dict=False)
    assert type(plain) is tuple
    assert len(plain) == 1
    last, states, attentions = model(inputs, return_dict=False, output_hidden_states=True, output_attentions=True)
    assert last.shape == (2, 3, 4)
    assert len(states) == 4
    assert len(attentions) == 3


def test_return_dict_false_in_the_configuration_gives_a_tuple(either, inputs):
    assert type(build(either, {"return_dict": False})(inputs)) is tuple


@pytest.mark.parametrize(
    ("selection", "kept"), [([1, 3], {1, 3}), (2, {2}), ([-1], {3}), ([0, -2], {0, 2}), ([9, -9, 1], {1})]
)
def test_a_selection_of_hidden_states_leaves_none_in_the_other_places(either, inputs, selection, kept):
    model = build(either)
    states = model(inputs, output_hidden_states=selection).hidden_states
    assert {place for place, state in enumerate(states) if state is not None} == kept
    whole = model(inputs, output_hidden_states=True).hidden_states
    assert len(states) == len(whole)
    assert all(torch.equal(states[place], whole[place]) for place in kept)


def test_a_list_records_every_class_in_it(either, inputs):
    model = build(either, declared={"hidden_states": [Block, nn.LayerNorm]}, tie=False)
    assert len(model(inputs, output_hidden_states=True).hidden_states) == 5


def test_an_index_says_which_element_is_recorded(either, inputs):
    model = build(either, declared={"attentions": either.OutputRecorder(Attention, index=0)})
    outputs = model(inputs, output_attentions=True)
    assert [tuple(entry.shape) for entry in outputs.attentions] == [(2, 3, 4)] * 3


def test_layer_name_matches_whole_segments_only(either, inputs):
    declared = {
        "attentions": either.OutputRecorder(Attention, index=1, layer_name="attn"),
        "cross_attentions": either.OutputRecorder(Attention, index=1, layer_name="crossattn"),
    }
    outputs = build(either, declared=declared, block=CrossBlock)(inputs, output_attentions=True)
    assert len(outputs.attentions) == 3
    assert len(outputs.cross_attentions) == 3
    assert not torch.equal(outputs.attentions[0], outputs.cross_attentions[0])


def test_a_recorder_can_leave_out_the_initial_state(either, inputs):
    recorder = either.OutputRecorder(Block, capture_initial_hidden_state=False)
    model = build(either, declared={"hidden_states": recorder}, tie=False)
    assert same(model(inputs, output_hidden_states=True).hidden_states, expected_states(model, inputs)[1:])


def test_a_recorder_can_name_several_classes(either, inputs):
    recorder = either.OutputRecorder((Block, nn.LayerNorm))
    model = build(either, declared={"hidden_states": recorder}, tie=False)
    assert len(model(inputs, output_hidden_states=True).hidden_states) == 5


def nested(side):
    """A model whose encoder is a model with a declaration of its own, beside layers of the same classes."""
    encoder_class = define_model(side)

    class Outer(side.base):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self, config):
            super().__init__(config)
            self.encoder = encoder_class(config)
            self.head = Block()
            self.post_init()

        @side.capture_outputs(tie_last_hidden_states=False)
        def forward(self, inputs, **kwargs):
            encoded = self.encoder(inputs, **kwargs)
            self.seen = encoded
            return side.output(last_hidden_state=self.head(encoded.last_hidden_state))

    torch.manual_seed(0)
    return Outer(side.make_config()).eval()


def test_a_model_within_a_model_follows_its_own_declaration(either, inputs):
    model = nested(either)
    outputs = model(inputs, output_hidden_states=True, output_attentions=True)
    assert len(outputs.hidden_states) == 2
    assert outputs.attentions is None
    assert len(model.seen.hidden_states) == 4
    assert len(model.seen.attentions) == 3


def test_an_inner_model_returns_fields_when_the_outer_is_asked_for_a_tuple(either, inputs):
    assert type(nested(either)(inputs, return_dict=False)) is tuple


def test_an_exception_in_the_forward_leaves_the_next_call_clean(either, inputs):
    model = build(either)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 3, 5), output_hidden_states=True, output_attentions=True)
    assert model(inputs).hidden_states is None
    assert len(model(inputs, output_hidden_states=True).hidden_states) == 4


def test_each_thread_collects_its_own_call(either):
    model = build(either, tie=False)
    results: dict[int, tuple[int, torch.Tensor]] = {}
    start = threading.Barrier(8)

    def run(number: int) -> None:
        start.wait()
        for _ in range(10):
            states = model(torch.full((1, 3, 4), float(number)), output_hidden_states=True).hidden_states
            results[number] = (len(states), states[0])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(8))
    for number, (count, first) in results.items():
        assert count == 4
        assert torch.equal(first, torch.full((1, 3, 4), float(number)))


def test_a_model_that_calls_itself_collects_each_call_apart(either, inputs):
    decorate = either.capture_outputs(tie_last_hidden_states=False)

    class Recursive(either.base):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self, config):
            super().__init__(config)
            self.layer = Block()
            self.post_init()

        @decorate
        def forward(self, inputs, depth=0, **kwargs):
            states = self.layer(inputs)
            if depth:
                inner = self(states, depth=depth - 1, **kwargs)
                assert len(inner.hidden_states) == 2
                states = inner.last_hidden_state
            return either.output(last_hidden_state=states)

    outputs = Recursive(either.make_config())(inputs, depth=2, output_hidden_states=True)
    assert len(outputs.hidden_states) == 2


def test_the_tuples_are_part_of_the_graph(either, inputs):
    model = build(either)
    model(inputs.requires_grad_(), output_hidden_states=True).hidden_states[1].sum().backward()
    assert inputs.grad is not None
    assert model.layers[0].attn.project.weight.grad is not None
    assert model.layers[1].attn.project.weight.grad is None
