"""Behaviour in which transformers' own implementation (5.24) breaks its documentation, and ours keeps it."""

from __future__ import annotations

import copy
import io
import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from twinlens import OutputRecorder, capture_outputs

from .conftest import Attention, Block, PlainOutput, define_model, expected_states
from .test_capture_outputs import build, nested


def test_the_integer_zero_selects_the_first_hidden_state(ours, inputs):
    # transformers takes 0 for False and returns None.
    states = build(ours)(inputs, output_hidden_states=0).hidden_states
    assert torch.equal(states[0], inputs)
    assert states[1:] == (None, None, None)


def test_none_in_the_call_leaves_the_flag_to_the_configuration(ours, inputs):
    # transformers takes an explicit None for False, though its page says that None is resolved.
    model = build(ours, {"output_hidden_states": True, "return_dict": False})
    outputs = model(inputs, output_hidden_states=None, return_dict=None)
    assert type(outputs) is tuple
    assert len(outputs[1]) == 4


def test_an_inner_model_keeps_its_fields_when_the_shared_configuration_says_return_dict_false(ours, inputs):
    # In transformers the inner model reads the same configuration, returns a tuple, and the outer forward fails.
    model = nested(ours)
    model.config.return_dict = False
    assert type(model(inputs)) is tuple
    assert type(model.encoder(inputs)) is tuple


def test_an_inner_model_that_was_hooked_first_is_not_hooked_twice(ours, inputs):
    # transformers installs the hooks of the inner model again with the outer's, and each state is then collected twice.
    model = nested(ours)
    model.encoder(inputs, output_hidden_states=True)
    model(inputs, output_hidden_states=True)
    assert len(model.seen.hidden_states) == 4


def test_a_module_at_two_places_is_hooked_once(ours, inputs):
    class Tied(nn.Module):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self):
            super().__init__()
            self.first = nn.ModuleList([Block()])
            self.second = nn.ModuleList([self.first[0]])

        @capture_outputs(tie_last_hidden_states=False)
        def forward(self, inputs, **kwargs):
            return PlainOutput(last_hidden_state=self.second[0](self.first[0](inputs)))

    assert len(Tied()(inputs, output_hidden_states=True).hidden_states) == 3


def test_a_class_name_names_a_class(ours, inputs):
    # transformers compares the string with the module's path, which never ends with the name of a class.
    model = build(ours, declared={"hidden_states": "Block"}, tie=False)
    assert len(model(inputs, output_hidden_states=True).hidden_states) == 4


def test_the_last_segments_of_a_path_may_stand_for_a_class(ours, inputs):
    declared = {"attentions": OutputRecorder(None, index=1, class_name="attn")}
    assert len(build(ours, declared=declared)(inputs, output_attentions=True).attentions) == 3


def test_layer_name_does_not_see_the_place_of_the_model_in_its_parent(ours, inputs):
    # In transformers, hooks installed by the outer model match "encoder" in its own path, and so everything below it.
    class Encoder(nn.Module):
        _can_record_outputs = {"hidden_states": OutputRecorder(Block, layer_name="encoder")}

        def __init__(self):
            super().__init__()
            self.encoder = Block()
            self.adapter = Block()

        @capture_outputs(tie_last_hidden_states=False)
        def forward(self, inputs, **kwargs):
            return PlainOutput(last_hidden_state=self.adapter(self.encoder(inputs)))

    class Outer(nn.Module):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self):
            super().__init__()
            self.encoder = Encoder()

        @capture_outputs
        def forward(self, inputs, **kwargs):
            return PlainOutput(last_hidden_state=len(self.encoder(inputs, **kwargs).hidden_states))

    with pytest.warns(UserWarning, match="no module"):
        outputs = Outer()(inputs, output_hidden_states=True)
    assert outputs.last_hidden_state == 2
    assert outputs.hidden_states == ()


def test_a_layer_called_by_keyword_gives_its_input(ours, inputs):
    # transformers reads args[0] and raises IndexError.
    class ByKeyword(nn.Module):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self):
            super().__init__()
            self.layer = Block()

        @capture_outputs(tie_last_hidden_states=False)
        def forward(self, inputs, **kwargs):
            return PlainOutput(last_hidden_state=self.layer(states=inputs))

    states = ByKeyword()(inputs, output_hidden_states=True).hidden_states
    assert torch.equal(states[0], inputs)
    assert len(states) == 2


def test_a_positional_flag_is_seen(ours, inputs):
    class Old(nn.Module):
        _can_record_outputs = {"attentions": Attention}

        def __init__(self):
            super().__init__()
            self.attn = Attention()

        @capture_outputs
        def forward(self, inputs, output_attentions=None, return_dict=None):
            assert return_dict is True
            return PlainOutput(last_hidden_state=self.attn(inputs)[0])

    assert len(Old()(inputs, True).attentions) == 1
    assert len(Old()(inputs, True, False)) == 2


def test_a_forward_without_kwargs_is_not_given_the_flags(ours, inputs):
    class Strict(nn.Module):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self):
            super().__init__()
            self.layer = Block()

        @capture_outputs
        def forward(self, inputs):
            return {"last_hidden_state": self.layer(inputs)}

    outputs = Strict()(inputs, output_hidden_states=True)
    assert len(outputs["hidden_states"]) == 2
    assert len(Strict()(inputs, output_hidden_states=True, return_dict=False)) == 2


def test_a_model_with_hooks_can_be_pickled_and_copied(ours, inputs):
    # After its first capture, transformers' model holds a closure that pickle refuses.
    model = PickledModel()
    before = model(inputs, output_hidden_states=True).hidden_states
    stream = io.BytesIO()
    torch.save(model, stream)
    stream.seek(0)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), torch.load(stream, weights_only=False)):
        after = twin(inputs, output_hidden_states=True).hidden_states
        assert len(after) == len(before) == 2
        assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))


class PickledModel(nn.Module):
    _can_record_outputs = {"hidden_states": Block}

    def __init__(self):
        super().__init__()
        self.layer = Block()

    @capture_outputs
    def forward(self, inputs, **kwargs):
        return PlainOutput(last_hidden_state=self.layer(inputs))


def test_attention_without_weights_is_named_with_its_remedy(ours, inputs):
    # transformers returns an empty tuple and says nothing.
    class Fused(Block):
        def __init__(self):
            super().__init__(weights=False)

    model = build(ours, {"_attn_implementation": "sdpa"}, block=Fused)
    with pytest.warns(UserWarning, match="'sdpa' computes no weights: use 'eager'"):
        assert model(inputs, output_attentions=True).attentions == ()


def test_a_declared_class_that_never_runs_is_named(ours, inputs):
    class Unused(nn.Module):
        pass

    model = build(ours, declared={"hidden_states": Unused})
    with pytest.warns(UserWarning, match=r"no module that _can_record_outputs\['hidden_states'\] names ran"):
        assert model(inputs, output_hidden_states=True).hidden_states == ()


def test_a_hidden_state_that_there_is_not_is_named(ours, inputs):
    # transformers drops it and says nothing, so that one counts layers from 1, or another model's, in vain.
    model = build(ours)
    with pytest.warns(UserWarning, match="asks for -5, 9, but the forward made 4 hidden states, 0 to 3 or -4 to -1"):
        states = model(inputs, output_hidden_states=[9, -5, 1]).hidden_states
    assert [state is not None for state in states] == [False, True, False, False]


def test_negative_places_need_no_number_of_layers_in_the_configuration(ours, inputs):
    model = build(ours, tie=False)
    model.config = SimpleNamespace()
    states = model(inputs, output_hidden_states=[-2, 0]).hidden_states
    assert [state is not None for state in states] == [True, False, True, False]
    assert torch.equal(states[2], expected_states(model, inputs)[2])


def test_a_selection_frees_the_states_that_it_leaves_out_while_the_forward_runs(ours):
    from twinlens.capture.collector import Collected, Selection

    collected = Collected(Selection([1, -1]))
    held = []
    for entry in "abcdef":
        collected.add(entry)
        held.append("".join(kept for kept in collected.entries if kept is not None))
    assert held == ["a", "b", "bc", "bd", "be", "bf"]
    assert collected.finish() == (None, "b", None, None, None, "f")


@pytest.mark.parametrize("config", [None, SimpleNamespace()])
def test_a_model_needs_no_configuration(inputs, config):
    class Bare(nn.Module):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self):
            super().__init__()
            self.layer = Block()

        @capture_outputs
        def forward(self, inputs, **kwargs):
            return {"last_hidden_state": self.layer(inputs)}

    model = Bare()
    if config is not None:
        model.config = config
    assert len(model(inputs, output_hidden_states=True)["hidden_states"]) == 2
    assert type(model(inputs, return_dict=False)) is tuple


@dataclass(frozen=True)
class FrozenOutput:
    last_hidden_state: Any = None
    hidden_states: Any = None


def returning(value):
    class Returning(nn.Module):
        _can_record_outputs = {"hidden_states": Block}

        def __init__(self):
            super().__init__()
            self.layer = Block()

        @capture_outputs
        def forward(self, inputs, **kwargs):
            return value(self.layer(inputs))

    return Returning()


def test_a_frozen_dataclass_is_copied(inputs):
    outputs = returning(lambda state: FrozenOutput(last_hidden_state=state))(inputs, output_hidden_states=True)
    assert isinstance(outputs, FrozenOutput)
    assert len(outputs.hidden_states) == 2


def test_what_cannot_bear_the_outputs_is_refused_in_one_sentence(inputs):
    with pytest.raises(TypeError, match=r"Returning\.forward returned a tuple: to receive 'hidden_states', it must"):
        returning(lambda state: (state,))(inputs, output_hidden_states=True)
    assert type(returning(lambda state: (state,))(inputs)) is tuple


def test_a_field_that_the_output_lacks_is_named(ours, inputs):
    with pytest.raises(TypeError, match=r"PlainOutput, which Model\.forward returns, has no field 'hiden_states'"):
        build(ours, declared={"hiden_states": Block})(inputs, output_hiden_states=True)


def test_an_index_past_the_output_is_named(ours, inputs):
    declared = {"attentions": OutputRecorder(Attention, index=2)}
    with pytest.raises(IndexError, match="records element 2 of what Attention returns, which has 2"):
        build(ours, declared=declared)(inputs, output_attentions=True)


@pytest.mark.parametrize(
    ("value", "sentence"), [((Block, Attention), "a tuple: a list is meant"), (3, "an int|a int"), (int, "a type")]
)
def test_a_value_that_is_no_recorder_is_named(ours, inputs, value, sentence):
    with pytest.raises(TypeError, match=sentence):
        build(ours, declared={"hidden_states": value})(inputs, output_hidden_states=True)


@pytest.mark.parametrize("places", ["first", 1.5, ["1"]])
def test_a_selection_that_is_no_place_is_refused(ours, inputs, places):
    with pytest.raises(TypeError, match="must be True, False, an integer or a list of integers"):
        build(ours)(inputs, output_hidden_states=places)


def test_transformers_recorders_are_read_as_ours(inputs):
    recorder = pytest.importorskip("transformers.utils.output_capturing").OutputRecorder
    from .conftest import ours

    declared = {"hidden_states": [recorder(Block, capture_initial_hidden_state=False)], "attentions": Attention}
    outputs = build(ours(), declared=declared)(inputs, output_hidden_states=True, output_attentions=True)
    assert len(outputs.hidden_states) == 3
    assert len(outputs.attentions) == 3


def test_a_new_declaration_on_the_instance_is_followed(ours, inputs):
    model = build(ours, tie=False)
    other = define_model(ours)(ours.make_config())
    model(inputs, output_hidden_states=True)
    model._can_record_outputs = {"hidden_states": nn.LayerNorm}
    assert len(model(inputs, output_hidden_states=True).hidden_states) == 2
    assert len(other(inputs, output_hidden_states=True).hidden_states) == 4
