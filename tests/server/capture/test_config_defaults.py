"""What `merge_with_config_defaults` takes from the configuration."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from twinlens import capture_outputs, merge_with_config_defaults


def build(side, **config):
    merge = side.merge_with_config_defaults

    class Model(side.base):
        def __init__(self, config):
            super().__init__(config)
            self.layer = nn.Linear(2, 2)

        @merge
        def forward(self, inputs, use_cache=None, **kwargs):
            return use_cache, kwargs

    return Model(side.make_config(**config)).eval()


@pytest.mark.parametrize("configured", [True, False])
def test_use_cache_comes_from_the_configuration_when_the_call_gives_none(either, configured):
    model = build(either, use_cache=configured)
    assert model(None)[0] is configured
    assert model(None, use_cache=None)[0] is configured
    assert model(None, None)[0] is configured


@pytest.mark.parametrize("explicit", [True, False])
def test_an_explicit_argument_wins_by_position_and_by_keyword(either, explicit):
    model = build(either, use_cache=not explicit)
    assert model(None, explicit)[0] is explicit
    assert model(None, use_cache=explicit)[0] is explicit


def test_vision_arguments_come_from_the_configuration(either):
    model = build(either, vision_feature_layer=-2, vision_feature_select_strategy="full")
    _, kwargs = model(None)
    assert kwargs["vision_feature_layer"] == -2
    assert kwargs["vision_feature_select_strategy"] == "full"
    assert model(None, vision_feature_layer=1)[1]["vision_feature_layer"] == 1


def test_an_unknown_feature_selection_is_refused(either):
    with pytest.raises(ValueError, match="every"):
        build(either)(None, vision_feature_select_strategy="every")


def test_gradient_checkpointing_in_training_turns_the_cache_off(either):
    model = build(either, use_cache=True)
    model.gradient_checkpointing = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.train()(None)[0] is False
        assert model.train()(None, True)[0] is False
    assert model.eval()(None)[0] is True
    with torch.no_grad():
        assert model.train()(None)[0] is True


def test_a_call_can_set_causality_for_as_long_as_it_runs(either):
    model = build(either, is_causal=True)
    assert model(None, is_causal=False)[1]["is_causal"] is False
    assert model.config.is_causal is True
    assert model(None)[1]["is_causal"] is True


def test_causality_is_taken_back_when_the_forward_raises(either):
    merge = either.merge_with_config_defaults

    class Failing(either.base):
        @merge
        def forward(self, **kwargs):
            assert self.config.is_causal is False
            raise RuntimeError("on purpose")

    model = Failing(either.make_config(is_causal=True))
    with pytest.raises(RuntimeError, match="on purpose"):
        model(is_causal=False)
    assert model.config.is_causal is True


def test_checkpointing_warns_once(ours):
    model = build(ours, use_cache=True)
    model.gradient_checkpointing = True
    with pytest.warns(UserWarning, match="use_cache=False") as caught:
        model.train()(None)
        model.train()(None)
    assert len(caught) == 1


def test_an_explicit_positional_argument_survives_the_capturing_decorator(ours):
    # transformers looks for the parameter in the wrapper's own code and passes use_cache twice: a TypeError.
    class Model(nn.Module):
        _can_record_outputs = {}

        def __init__(self):
            super().__init__()
            self.config = SimpleNamespace(use_cache=True)

        @merge_with_config_defaults
        @capture_outputs
        def forward(self, inputs, use_cache=None, **kwargs):
            return {"use_cache": use_cache}

    assert Model()(None, False)["use_cache"] is False
    assert Model()(None, None)["use_cache"] is True


def test_a_forward_is_not_given_what_it_does_not_take(ours):
    # transformers passes it all the same, and the forward raises.
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = SimpleNamespace(use_cache=True, is_causal=True)

        @merge_with_config_defaults
        def forward(self, inputs):
            use_cache = inputs * 2
            return use_cache + 0

    assert Model()(1) == 2


def test_a_model_needs_no_configuration_for_its_defaults(ours):
    class Model(nn.Module):
        @merge_with_config_defaults
        def forward(self, use_cache=None, **kwargs):
            return use_cache, kwargs

    assert Model()() == (None, {})
    assert Model()(True, is_causal=False) == (True, {"is_causal": False})
