"""A shrunk config keeps what must divide or equal."""

from __future__ import annotations

import pytest
from twinlens.tracing.plans import PLANS
from twinlens.tracing.shrink import shrunk

DECODER = {
    "model_type": "x",
    "vocab_size": 128000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "pad_token_id": 128000,
    "eos_token_id": [128001, 2],
    "image_token_id": 127999,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}


def test_widths_shrink_by_one_factor_and_heads_stay():
    small = shrunk(DECODER, PLANS[0])
    assert (small["hidden_size"], small["head_dim"], small["intermediate_size"]) == (256, 8, 896)
    assert (small["num_attention_heads"], small["num_key_value_heads"]) == (32, 8)
    assert small["num_hidden_layers"] == 2


def test_the_vocabulary_is_cut_and_special_tokens_stay_distinct_and_inside():
    small = shrunk(DECODER, PLANS[0])
    specials = [small["image_token_id"], *small["eos_token_id"]]
    assert small["vocab_size"] == 384
    assert len(set(specials)) == 3
    assert max(specials) < 384
    assert small["eos_token_id"][1] == 2
    assert small["pad_token_id"] == small["vocab_size"]  # it was one past the vocabulary's end


def test_what_is_no_size_is_left_alone():
    small = shrunk(DECODER, PLANS[0])
    for name in ("rms_norm_eps", "tie_word_embeddings", "hidden_act", "max_position_embeddings"):
        assert small[name] == DECODER[name]


def test_each_kind_of_layer_is_kept_once():
    kinds = ["linear", "linear", "linear", "full"] * 8
    small = shrunk({**DECODER, "layer_types": kinds}, PLANS[0])
    assert small["layer_types"] == ["linear", "full"]
    assert small["num_hidden_layers"] == 2


def test_sub_configs_shrink_by_the_same_factor():
    fields = {
        "model_type": "both",
        "text_config": DECODER,
        "vision_config": {
            "model_type": "vision",
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "image_size": 448,
            "patch_size": 14,
            "out_hidden_size": 4096,
            "num_channels": 3,
        },
    }
    small = shrunk(fields, PLANS[0])
    vision = small["vision_config"]
    assert vision["out_hidden_size"] == small["text_config"]["hidden_size"]
    assert (vision["hidden_size"], vision["num_attention_heads"], vision["num_channels"]) == (128, 16, 3)
    assert (vision["image_size"], vision["patch_size"]) == (224, 14)


def test_experts_are_few():
    small = shrunk({**DECODER, "num_local_experts": 128, "num_experts_per_tok": 8}, PLANS[0])
    assert (small["num_local_experts"], small["num_experts_per_tok"]) == (4, 2)


@pytest.mark.parametrize("plan", PLANS)
def test_a_small_config_stays_as_it_is(plan):
    tiny = {**DECODER, "hidden_size": 16, "head_dim": 4, "intermediate_size": 32, "num_hidden_layers": 1}
    small = shrunk(tiny, plan)
    assert (small["hidden_size"], small["head_dim"], small["num_hidden_layers"]) == (16, 4, 1)


def test_what_is_stated_by_layer_moves_with_the_layers_that_are_kept():
    kinds = (["sliding"] * 5 + ["full"]) * 5
    by_layer = {f"{index:02}": {"head_dim": 512} for index in (5, 11, 17, 23, 29)}
    fields = {**DECODER, "num_hidden_layers": 30, "layer_types": kinds, "per_layer_config": by_layer}
    assert shrunk(fields, PLANS[0])["per_layer_config"] == {"1": {"head_dim": 32}}


def test_a_head_keeps_an_even_number_of_dimensions():
    small = shrunk({**DECODER, "hidden_size": 4608, "head_dim": 144}, PLANS[0])
    assert (small["hidden_size"], small["head_dim"]) == (576, 18)


def test_heads_that_do_not_divide_the_hidden_size_are_fewer():
    fields = {name: value for name, value in DECODER.items() if name != "head_dim"}
    small = shrunk({**fields, "num_attention_heads": 96}, PLANS[0])
    assert (small["hidden_size"], small["num_attention_heads"]) == (256, 32)


def test_stages_are_all_kept_and_each_is_less_deep():
    stages = {
        "model_type": "swin",
        "embed_dim": 96,
        "depths": [2, 2, 18, 2],
        "num_heads": [3, 6, 12, 24],
        "num_layers": 4,
        "hidden_size": 768,
        "stage_names": ["stem", "stage1", "stage2", "stage3", "stage4"],
        "out_features": ["stage4"],
        "out_indices": [4],
    }
    small = shrunk(stages, PLANS[0])
    assert (small["depths"], small["num_layers"]) == ([2, 2, 2, 2], 4)
    assert (small["out_features"], small["out_indices"]) == (["stage4"], [4])


def test_the_plan_that_fills_gaps_gives_values_to_fields_without_one():
    gaps = {"head_dim": None, "n_routed_experts": None, "n_shared_experts": None, "layer_types": None}
    rope = {"rope_theta": 1e4, "rope_type": "default"}
    plan = next(plan for plan in PLANS if plan.fills_gaps)
    small = shrunk({**DECODER, **gaps, "vocab_size": None, "rope_parameters": rope}, plan)
    assert (small["vocab_size"], small["head_dim"]) == (384, 8)
    assert (small["n_routed_experts"], small["n_shared_experts"]) == (4, 1)
    assert small["layer_types"] == ["full_attention", "full_attention"]
    assert small["rope_parameters"]["mrope_section"] == [2, 1, 1]


def test_layers_that_share_keep_their_part_of_all():
    fields = {**DECODER, "num_hidden_layers": 35, "num_kv_shared_layers": 15}
    assert shrunk(fields, PLANS[0])["num_kv_shared_layers"] == 0


def test_indices_of_layers_lie_within_those_that_are_left():
    fields = {"model_type": "both", "text_config": DECODER, "adapter_config": {"vision_feature_layer": [24, 18]}}
    assert shrunk(fields, PLANS[0])["adapter_config"] == {"vision_feature_layer": [1]}
