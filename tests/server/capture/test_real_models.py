"""Real models, built small: with transformers' decorators taken off and ours put on, the outputs are the same."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from typing import Any

import pytest
import torch
import twinlens

transformers = pytest.importorskip("transformers")
generic = pytest.importorskip("transformers.utils.generic")
output_capturing = pytest.importorskip("transformers.utils.output_capturing")

SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "vocab_size": 50,
    "pad_token_id": 0,
}
SEQ2SEQ = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "vocab_size": 50,
    "pad_token_id": 0,
}
VISION = {**SMALL, "image_size": 8, "patch_size": 4}
MOE = {**SMALL, "num_key_value_heads": 1, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
WORDS = torch.tensor([[3, 7, 1, 9, 4], [2, 2, 8, 5, 6]])
PIXELS = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)

# model class, configuration, inputs
FAMILIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("LlamaModel", {**SMALL, "num_key_value_heads": 1}, {"input_ids": WORDS}),
    "llama with a head": ("LlamaForCausalLM", {**SMALL, "num_key_value_heads": 1}, {"input_ids": WORDS}),
    "gemma2": ("Gemma2Model", {**SMALL, "num_key_value_heads": 1, "head_dim": 8}, {"input_ids": WORDS}),
    "gpt2": ("GPT2Model", {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50}, {"input_ids": WORDS}),
    "mixtral": ("MixtralModel", MOE, {"input_ids": WORDS, "output_router_logits": True}),
    "qwen3_moe": (
        "Qwen3MoeModel",
        {**MOE, "head_dim": 8, "moe_intermediate_size": 16},
        {"input_ids": WORDS, "output_router_logits": True},
    ),
    "bert": ("BertModel", SMALL, {"input_ids": WORDS}),
    "bert decoder": (
        "BertModel",
        {**SMALL, "is_decoder": True, "add_cross_attention": True},
        {"input_ids": WORDS, "encoder_hidden_states": torch.ones(2, 4, 16)},
    ),
    "t5": (
        "T5Model",
        {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 50},
        {"input_ids": WORDS, "decoder_input_ids": WORDS},
    ),
    "bart": ("BartModel", SEQ2SEQ, {"input_ids": WORDS}),
    "whisper": (
        "WhisperModel",
        {**SEQ2SEQ, "num_mel_bins": 4, "max_source_positions": 5, "decoder_start_token_id": 1},
        {"input_features": torch.linspace(-1, 1, 2 * 4 * 10).reshape(2, 4, 10), "decoder_input_ids": WORDS},
    ),
    "vit": ("ViTModel", VISION, {"pixel_values": PIXELS}),
    "siglip": ("SiglipVisionModel", VISION, {"pixel_values": PIXELS}),
    "clip": (
        "CLIPModel",
        {"text_config": {**SMALL, "eos_token_id": 9}, "vision_config": VISION, "projection_dim": 8},
        {"input_ids": WORDS, "pixel_values": PIXELS},
    ),
    "swin": (
        "SwinModel",
        {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2},
        {"pixel_values": torch.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16)},
    ),
    "blip text": ("BlipTextModel", {**SMALL, "encoder_hidden_size": 16}, {"input_ids": WORDS}),
    "wav2vec2": (
        "Wav2Vec2Model",
        {
            **SMALL,
            "conv_dim": (8, 8),
            "conv_stride": (2, 2),
            "conv_kernel": (3, 3),
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
        },
        {"input_values": torch.linspace(-1, 1, 2 * 64).reshape(2, 64)},
    ),
}
FLAGS = [
    dict(zip(("output_attentions", "output_hidden_states", "return_dict"), values, strict=True))
    for values in itertools.product([False, True], repeat=3)
]


def build(name: str) -> torch.nn.Module:
    class_name, values, _ = FAMILIES[name]
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**values)
    torch.manual_seed(0)
    return model_class._from_config(config, attn_implementation="eager").eval()


@pytest.fixture
def ours_of(monkeypatch):
    """Reads a model's modeling file again, with our two decorators in the place of transformers' own."""

    def read(model_class: type) -> type:
        original = sys.modules[model_class.__module__]
        monkeypatch.setattr(output_capturing, "capture_outputs", twinlens.capture_outputs)
        monkeypatch.setattr(generic, "merge_with_config_defaults", twinlens.merge_with_config_defaults)
        name = f"{original.__name__}_decorated_by_twinlens"
        spec = importlib.util.spec_from_file_location(name, original.__file__)
        twin = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, twin)
        spec.loader.exec_module(twin)
        assert twin.capture_outputs is twinlens.capture_outputs
        return getattr(twin, model_class.__name__)

    return read


def assert_same(ours: Any, theirs: Any, path: str = "outputs") -> None:
    assert type(ours).__name__ == type(theirs).__name__, path
    if isinstance(theirs, torch.Tensor):
        assert torch.equal(ours, theirs), path
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), path
        for place, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(mine, its, f"{path}[{place}]")
    elif hasattr(theirs, "__dict__"):
        assert_same(vars(ours), vars(theirs), f"{path}.__dict__")
    else:
        assert ours == theirs, path


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs_are_the_same_for_every_combination_of_the_flags(name, ours_of):
    model = build(name)
    inputs = FAMILIES[name][2]
    twin = ours_of(type(model))._from_config(model.config, attn_implementation="eager").eval()
    twin.load_state_dict(model.state_dict())
    calls = [*FLAGS, {"output_hidden_states": [0, -1]}]
    with torch.no_grad():
        for flags in calls:
            assert_same(twin(**inputs, **flags), model(**inputs, **flags), f"{flags}: outputs")
