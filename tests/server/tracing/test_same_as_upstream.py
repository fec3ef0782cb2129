"""For real models of many families, our JSON is the upstream context's, key for key."""

from __future__ import annotations

import json
import re

import pytest
import torch
from safetensors.torch import load_file

transformers = pytest.importorskip("transformers")

import twinlens  # noqa: E402

IDS = torch.arange(2, 14).reshape(2, 6)
PIXELS = torch.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16)
TEXT = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}


def decoder():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**TEXT)), {"input_ids": IDS}


def encoder():
    fields = {name: value for name, value in TEXT.items() if name != "num_key_value_heads"}
    return transformers.BertModel(transformers.BertConfig(**fields)), {
        "input_ids": IDS,
        "attention_mask": torch.ones_like(IDS),
    }


def encoder_decoder():
    config = transformers.T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2)
    return transformers.T5ForConditionalGeneration(config), {"input_ids": IDS, "decoder_input_ids": IDS[:, :3]}


def vision():
    return transformers.ViTForImageClassification(transformers.ViTConfig(**VISION)), {"pixel_values": PIXELS}


def convolutional():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 1], layer_type="basic")
    return transformers.ResNetModel(config), {"pixel_values": PIXELS}


def audio():
    config = transformers.Wav2Vec2Config(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        conv_dim=[8, 8],
        conv_stride=[4, 2],
        conv_kernel=[8, 4],
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )
    return transformers.Wav2Vec2Model(config), {"input_values": torch.linspace(-1, 1, 800).reshape(2, 400)}


def mixture_of_experts():
    config = transformers.MixtralConfig(**TEXT, num_local_experts=4, num_experts_per_tok=2)
    return transformers.MixtralForCausalLM(config), {"input_ids": IDS}


def state_space():
    config = transformers.MambaConfig(vocab_size=32, hidden_size=16, num_hidden_layers=3, state_size=4)
    return transformers.MambaForCausalLM(config), {"input_ids": IDS}


def multimodal():
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION, projection_dim=16),
        text_config=transformers.LlamaConfig(**TEXT),
        image_token_id=1,
        image_seq_length=4,
    )
    ids = torch.tensor([[1, 1, 1, 1, 5, 6], [1, 1, 1, 1, 7, 8]])
    return transformers.LlavaForConditionalGeneration(config), {"input_ids": ids, "pixel_values": PIXELS}


def shared_layers():
    config = transformers.AlbertConfig(
        vocab_size=32,
        embedding_size=8,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
    )
    return transformers.AlbertModel(config), {"input_ids": IDS}


FAMILIES = [
    decoder,
    encoder,
    encoder_decoder,
    vision,
    convolutional,
    audio,
    mixture_of_experts,
    state_space,
    multimodal,
    shared_layers,
]

UPSTREAM_STATISTICS = {"torch.float16", "torch.float32", "torch.bfloat16"}


def without_our_additions(node):
    """`node` less the statistics that upstream gives to no integer, bool or float64 tensor."""
    if isinstance(node, list):
        return [without_our_additions(item) for item in node]
    if not isinstance(node, dict):
        return node
    dtype = node.get("dtype")
    ours = {"mean", "std", "min", "max"} if isinstance(dtype, str) and dtype not in UPSTREAM_STATISTICS else set()
    return {key: without_our_additions(value) for key, value in node.items() if key not in ours}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("use_repr", [True, False], ids=["repr", "safetensors"])
@pytest.mark.parametrize("prune", [True, False], ids=["pruned", "whole"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_both_files_are_upstreams(family, prune, use_repr, tmp_path, read_json):
    torch.manual_seed(673)
    model, inputs = family()
    model.eval()
    written = {}
    for library in (transformers, twinlens):
        folder = tmp_path / library.__name__
        with (
            torch.no_grad(),  # upstream leaves the root's own operations out of its no_grad
            library.model_addition_debugger_context(model, str(folder), do_prune_layers=prune, use_repr=use_repr),
        ):
            model(**inputs)
        written[library.__name__] = {path.name: path for path in folder.iterdir()}
    torch.set_printoptions(profile="default")
    upstream, ours = written["transformers"], written["twinlens"]
    # upstream's later calls of a module overwrite the earlier one's files; ours have a number in their names
    assert {_CALL.sub("", name) for name in ours} == set(upstream)
    for name in upstream:
        if name.endswith(".json"):
            theirs = without_our_additions(read_json(ours[name]))
            assert json.loads(_CALL.sub("", json.dumps(theirs))) == read_json(upstream[name])
        elif not any(_CALL.sub("", other) == name for other in ours if other != name):
            assert torch.equal(load_file(ours[name])["data"], load_file(upstream[name])["data"])


_CALL = re.compile(r"_call\d+(?=_(inputs|outputs))")
