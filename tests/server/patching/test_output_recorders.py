"""Recorders follow the replaced classes, in every form, and those of other models stay."""

from __future__ import annotations

import pytest
import torch
import twinlens
from torch import nn

from .conftest import Fused, Other


class Attention(nn.Module):
    def forward(self, states):
        return states + 1, states


class MLP(nn.Module):
    def forward(self, states):
        return states


def model_class(declared, decorate=twinlens.capture_outputs):
    class Model(nn.Module):
        _can_record_outputs = declared

        def __init__(self):
            super().__init__()
            self.attn = Attention()
            self.mlp = MLP()

        @decorate
        def forward(self, states, **kwargs):
            return {"last_hidden_state": self.mlp(self.attn(states)[0])}

    return Model


def recorder_class(registry):
    if registry.__name__.startswith("twinlens"):
        return twinlens.OutputRecorder
    from transformers.utils.output_capturing import OutputRecorder

    return OutputRecorder


def test_every_form_of_recorder_is_patched_and_a_list_stays_a_list(registry):
    recorder = recorder_class(registry)
    model = model_class(
        {
            "a": Attention,
            "b": "Attention",
            "c": recorder(Attention, index=1, layer_name="attn"),
            "d": [Attention, recorder(MLP, index=0)],
            "e": recorder(None, index=1, class_name="Attention"),
        }
    )()
    registry.register_patch_mapping({"Attention": Fused})
    registry.patch_output_recorders(model)
    declared = model._can_record_outputs
    assert declared["a"] is Fused
    assert declared["b"] is Fused
    assert (declared["c"].target_class, declared["c"].index, declared["c"].layer_name) == (Fused, 1, "attn")
    assert declared["d"][0] is Fused
    assert declared["d"][1].target_class is MLP
    assert declared["e"].target_class is Fused


def test_without_a_mapping_nothing_changes(registry):
    declared = {"a": Attention}
    model = model_class(declared)()
    registry.patch_output_recorders(model)
    assert model._can_record_outputs is declared


def test_models_within_the_model_are_patched(registry):
    outer = nn.Module()
    outer.inner = model_class({"a": Attention})()
    registry.register_patch_mapping({"Attention": Fused})
    registry.patch_output_recorders(outer)
    assert outer.inner._can_record_outputs == {"a": Fused}


def test_a_patched_instance_leaves_its_class_and_the_recorder_objects_alone(ours):
    # transformers writes to the mapping of the class, and into the recorder itself.
    recorder = twinlens.OutputRecorder(Attention)
    cls = model_class({"a": Attention, "b": recorder})
    model = cls()
    ours.register_patch_mapping({"Attention": Fused})
    ours.patch_output_recorders(model)
    assert model._can_record_outputs["b"].target_class is Fused
    assert cls()._can_record_outputs == {"a": Attention, "b": recorder}
    assert recorder.target_class is Attention


def test_the_class_is_patched_on_request(ours):
    cls = model_class({"a": Attention})
    before, model = cls(), cls()
    ours.register_patch_mapping({"Attention": Fused})
    ours.patch_output_recorders(model, scope="class")
    assert before._can_record_outputs == cls()._can_record_outputs == {"a": Fused}


def test_another_scope_is_refused(ours):
    with pytest.raises(ValueError, match="'instance' or 'class'"):
        ours.patch_output_recorders(model_class({})(), scope="module")


def test_a_recorder_of_several_classes_is_patched_class_by_class(ours):
    model = model_class({"a": twinlens.OutputRecorder((Attention, MLP))})()
    ours.register_patch_mapping({"Attention": Fused})
    ours.patch_output_recorders(model)
    assert model._can_record_outputs["a"].target_class == (Fused, MLP)


def test_what_is_no_recorder_is_refused_and_nothing_is_changed(ours):
    declared = {"a": Attention, "b": 3}
    model = model_class(declared)()
    ours.register_patch_mapping({"Attention": Fused})
    with pytest.raises(TypeError, match=r"\['b'\] holds 3"):
        ours.patch_output_recorders(model)
    assert model._can_record_outputs is declared


def test_outputs_are_recorded_from_replaced_layers_with_no_further_call(ours):
    cls = model_class({"attentions": Attention})
    ours.register_patch_mapping({"Attention": Fused})
    with ours.apply_patches():
        model = cls()
        assert model._can_record_outputs == {"attentions": Fused}
        assert len(model(torch.ones(2), output_attentions=True)["attentions"]) == 1
    assert type(model.attn) is Fused
    assert len(model(torch.ones(2), output_attentions=True)["attentions"]) == 1
    assert len(cls()(torch.ones(2), output_attentions=True)["attentions"]) == 1


def test_hooks_that_were_there_follow_the_patched_recorders(ours):
    model = model_class({"attentions": Attention})()
    assert len(model(torch.ones(2), output_attentions=True)["attentions"]) == 1
    model.attn = Fused()
    ours.register_patch_mapping({"Attention": Fused})
    ours.patch_output_recorders(model)
    outputs = model(torch.ones(2), output_attentions=True)
    assert torch.equal(outputs["attentions"][0], torch.ones(2))


def test_a_replacement_is_not_itself_replaced(ours):
    model = model_class({"a": Other})()
    ours.register_patch_mapping({"^(Other|Attention)$": Fused, "Attention": Other})
    ours.patch_output_recorders(model)
    assert model._can_record_outputs == {"a": Other}
