"""What the fields of model configs mean, told by their names: the conventions of transformers."""

from __future__ import annotations

import re
from typing import Any

MAIN_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "depth")
OF_STAGES = ("stage_names", "out_features", "out_indices")

SHARED_LAYERS = re.compile(r"(^|_)shared_layers$")
HEADS = re.compile(r"(^|_)(n|num)_(\w+_)?heads?$|(^|_)(attention|attn)_heads?$|^heads$")
HEAD_SIZE = re.compile(r"head_dim$|headdim$|d_kv$|d_head$|head_size$")
VOCAB = re.compile(r"vocab_sizes?$|vocab_size_per_layer_input$")
TOKEN_ID = re.compile(r"(token_id|token_index|_token_ids|unk_index|_pad_id|_id|_ids)$")
EXPERTS = re.compile(r"^(num|n|moe_num)_(routed_|local_)?experts$")
CHOSEN_EXPERTS = re.compile(r"experts_per_tok(en)?$|^moe_top_?k$|^moe_k$|^top_k_experts$|^num_selected_experts$")
EXPERT_GROUPS = re.compile(r"^(n_group|topk_group|num_expert_group)$")
SHARED_EXPERTS = re.compile(r"^(num|n)_shared_experts$")
IMAGE = re.compile(r"(^|_)(image_size|img_size|resolution|crop_size)$")
SLIDING = re.compile(r"^(sliding_window|sliding_window_size|attention_chunk_size)$")
DEPTHS = re.compile(
    r"depths?$|num_block_repeats|blocks_per_stage|num_blocks|n_attn_blocks|block_sizes|^layers$|numb_of_layers"
)
LAYER_INDICES = re.compile(r"(^|_)(ind|idx|idxs|index|indexes|indices|layer_ids)$|_layers$|feature_layer$")
NEVER_A_WIDTH = re.compile(
    r"max_|position|vocab|token|_ids?$|image|patch|window|num_|^n_(?!embd|inner|mels)|frames|length|kernel|stride|rate|context"
    r"|sampling|window|queries|points|mel|bins|ratio|chunk|size_divis|latents$|temperature|seq|resolution"
)

_LAYERS = re.compile(r"(^|_)(n_|num_)?(\w+_)?(layers?|blocks)$|^depth$")
_NOT_LAYERS = re.compile(
    r"_per_|every|frequency|insert|freeze|interval|adapter|hybrid|proj_layers|conditional_layer$|feature_layer"
)
_HIDDEN_SIZE = re.compile(r"hidden_size$|hidden_dim$|d_model$|n_embd$|embed_dim$")
_WIDTH = re.compile(
    r"hidden_size|hidden_dim|hidden_channels|d_model|n_embd|n_inner|embed_dim|embeds?_dim|embedding_size|embedding_dim|emb_(dim|size)"
    r"|ffn_(dim|size)|d_?ff$|dim_ff|feedforward_dim|dim_feedforward|intermediate_(size|dim)|d_inner|mlp_dim|head_dim|headdim|d_head|d_kv"
    r"|head_size|_rank$|_dim$|^dim$|^dim_|(^|_)width$|projection_size|units$|pos_feats|query_pre_attn_scalar|d_latents|d_rel"
    r"|per_layer_input|fpn_feature_size|mask_feature_size|kv_channels|dims$|d_ssm$|channel_list|embed_dim_per_stage|pooler_output_size"
)
_NOT_WIDTH = re.compile(
    r"num_|^n_(?!embd|inner)|kernel|stride|window|ratio|max_|patch|image_size|token|ids?$|mel|sampling|state_dim|act_dim|action_dim"
    r"|conv_kernel_dim|condition_dim|query_dim|embedding_dimension|input_channels"
)
_CHANNELS = re.compile(r"_channels$|^(in|out)_channels$")


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_layer_count(name: str) -> bool:
    return _LAYERS.search(name) is not None and not _NOT_LAYERS.search(name)


def is_hidden_size(name: str, value: Any) -> bool:
    return is_count(value) and _HIDDEN_SIZE.search(name) is not None


def is_width(name: str) -> bool:
    """A size that scales with the model: a hidden, feed-forward, head, rank or channel dimension."""
    return _WIDTH.search(name) is not None and not _NOT_WIDTH.search(name)
