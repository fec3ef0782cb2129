"""Models of transformers, built in our block: their own decorator records from the replaced layers."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

transformers = pytest.importorskip("transformers")
modeling_llama = pytest.importorskip("transformers.models.llama.modeling_llama")
modeling_t5 = pytest.importorskip("transformers.models.t5.modeling_t5")


class SilentAttention(nn.Module):
    """Not a subclass of what it replaces, so that recorders which name the original would find nothing."""

    def __init__(self, config, layer_idx):
        super().__init__()
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states, **kwargs):
        return self.o_proj(hidden_states), torch.full((1,), 7.0)


@pytest.fixture
def config():
    return transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        vocab_size=50,
    )


WORDS = torch.tensor([[1, 2, 3]])


def attentions_of(model):
    model = getattr(model, "model", model)
    return model(WORDS, output_attentions=True, output_hidden_states=True)


@pytest.mark.parametrize("build", ["constructor", "from_config", "from_pretrained"])
def test_a_model_however_built_records_from_the_replacements(ours, config, build, tmp_path):
    if build == "from_pretrained":
        transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    ours.register_patch_mapping({"LlamaAttention": SilentAttention})
    with ours.apply_patches(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if build == "constructor":
            model = transformers.LlamaForCausalLM(config)
        elif build == "from_config":
            model = transformers.AutoModelForCausalLM.from_config(config)
        else:
            model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
        within = attentions_of(model)
    after = attentions_of(model)
    for outputs in (within, after):
        assert [entry.item() for entry in outputs.attentions] == [7.0, 7.0]
        assert len(outputs.hidden_states) == 3


def test_other_models_of_the_class_are_untouched_before_and_after(ours, config):
    # After transformers' own patching, a fresh Llama records no attentions: its class still names the replacement.
    config._attn_implementation = "eager"
    before = transformers.LlamaModel(config).eval()
    ours.register_patch_mapping({"LlamaAttention": SilentAttention})
    with ours.apply_patches():
        patched = transformers.LlamaModel(config)
    ours.clear_patch_mapping()
    after = transformers.LlamaModel(config).eval()
    assert len(attentions_of(patched).attentions) == 2
    for model in (before, after):
        outputs = attentions_of(model)
        assert [tuple(entry.shape) for entry in outputs.attentions] == [(1, 2, 3, 3)] * 2
        assert len(outputs.hidden_states) == 3
    assert modeling_llama.LlamaPreTrainedModel._can_record_outputs["attentions"] is modeling_llama.LlamaAttention


def test_a_model_patched_by_hand_records_from_the_replacements(ours, config):
    ours.register_patch_mapping({"LlamaAttention": SilentAttention})
    model = transformers.LlamaModel(config)
    for layer in model.layers:
        layer.self_attn = SilentAttention(config, 0)
    assert attentions_of(model).attentions == ()
    ours.patch_output_recorders(model)
    outputs = attentions_of(model)
    assert [entry.item() for entry in outputs.attentions] == [7.0, 7.0]
    assert len(outputs.hidden_states) == 3


def test_recorders_of_transformers_are_patched_in_an_encoder_and_decoder(ours):
    class Quiet(modeling_t5.T5LayerNorm):
        pass

    config = transformers.T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=50)
    ours.register_patch_mapping({"T5LayerNorm": Quiet})
    with ours.apply_patches():
        model = transformers.T5Model(config).eval()
    plain = transformers.T5Model(config).eval()
    plain.load_state_dict(model.state_dict())
    assert type(model.encoder.final_layer_norm) is Quiet
    call = {"input_ids": WORDS, "decoder_input_ids": WORDS, "output_hidden_states": True}
    for key in ("encoder_hidden_states", "decoder_hidden_states"):
        assert all(torch.equal(a, b) for a, b in zip(model(**call)[key], plain(**call)[key], strict=True))
