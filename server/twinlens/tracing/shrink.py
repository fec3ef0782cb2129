"""A small config from a large one, in proportion: what must divide or equal still does.

All widths (hidden sizes, feed-forward sizes, head dimensions, ranks, projections, in every sub-config) are divided by
one power of two, counts of heads and groups stay, so that hidden = heads x head dimension and every equality between
widths hold. Layers are cut to a few that hold each kind of layer once; vocabularies, experts and images have limits
of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LAYERS = re.compile(r"(^|_)(n_|num_)?(hidden_|encoder_|decoder_|text_|\w+_)?(layers?|blocks)$|^depth$|^n_layers?$")
_NOT_LAYERS = re.compile(
    r"_per_|every|frequency|insert|freeze|interval|adapter|hybrid|proj_layers|^conditional_layer$|feature_layer"
)
_DEPTHS = re.compile(
    r"depths?$|num_block_repeats|blocks_per_stage|(^|_)layers$|num_blocks|n_attn_blocks|block_sizes|_depths"
)
_HEADS = re.compile(
    r"(^|_)(n|num|attention|attn)_?(attention_|self_attention_|query_)?heads?$|(^|_)attention_heads$|^heads$"
)
_WIDTH = re.compile(
    r"hidden_size|hidden_dim|d_model|n_embd|embed_dim|embedding_size|embedding_dim|embeds_dim|emb_dim|emb_size|ffn_dim|ffn_size|d_ff|^dff$"
    r"|dim_ff|feedforward_dim|dim_feedforward|intermediate_size|intermediate_dim|inner_dim|d_inner|mlp_dim|head_dim|headdim|d_head|d_kv"
    r"|head_size|_rank$|^dim$|_dim$|^dim_|hidden_sizes|embed_dims|^width$|_width$|proj_dim|projection_size|projection_dim|units$"
    r"|pos_feats|query_pre_attn_scalar|mrope_section|d_latents|d_rel|encoder_stride_dim|per_layer_input|fpn_feature_size|mask_feature_size"
    r"|kv_channels|hidden_channels|proj_dims|backbone_channel_list|embed_dim_per_stage|lru_width|qk_rope|qk_nope|pooler_output_size|output_hidden_size"
)
_NOT_WIDTH = re.compile(
    r"num_|^n_|kernel|stride|window|ratio|max_|patch|image_size|token|ids?$|mel|sampling|time_step_rank_|state_dim|act_dim|action_dim|conv_kernel_dim"
    r"|in_channels|out_channels|condition_dim|dim_bbox_$|embedding_dimension|resampler_dim_head_|feature_projection_input_dim_"
)
_VOCAB = re.compile(r"vocab_size(s)?$|vocab_size_per_layer_input$")
_TOKEN_ID = re.compile(r"(token_id|token_index|_token_ids|unk_index|_pad_id|_id|_ids)$")
_EXPERTS = re.compile(r"^(num|n|moe_num)_(routed_|local_)?experts$|^n_routed_experts$")
_CHOSEN_EXPERTS = re.compile(r"experts_per_tok(en)?$|moe_topk|moe_top_k|^moe_k$|^num_selected_experts$")
_EXPERT_GROUPS = re.compile(r"^(n_group|topk_group|num_expert_group)$")
_IMAGE = re.compile(r"(^|_)(image_size|img_size|resolution|crop_size)$")
_SLIDING = re.compile(r"^(sliding_window|sliding_window_size|attention_chunk_size)$")

_SMALL_VOCAB = 384
_SMALL_EXPERTS = 4
_SMALL_IMAGE = 256
_SMALL_WINDOW = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """How far to shrink. Plans are tried in turn: the smaller a model, the more its author's assumptions are at
    risk.
    """

    layers: int = 2
    smallest_head: int = 8
    """Widths are divided as long as no head gets narrower than this; 0 leaves widths alone."""
    widest: int = 64
    """Widths are divided no further when no hidden size is above this."""
    shrinks_vocabulary: bool = True
    shrinks_images: bool = True
    shrinks_windows: bool = True


PLANS = (
    Plan(),
    Plan(shrinks_images=False, shrinks_windows=False),
    Plan(smallest_head=16, widest=256, shrinks_images=False, shrinks_windows=False),
    Plan(layers=4, smallest_head=32, widest=512, shrinks_images=False, shrinks_windows=False),
    Plan(layers=8, smallest_head=0, shrinks_images=False, shrinks_windows=False),
    Plan(layers=2, smallest_head=0, shrinks_vocabulary=False, shrinks_images=False, shrinks_windows=False),
)


def shrunk(fields: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The fields of a config (`to_dict()`, sub-configs as dicts in it), made small."""
    divisor = _width_divisor(fields, plan)
    return _Shrinker(plan, divisor, _special_ids(fields)).config(fields)


def _sub_configs(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and ("model_type" in value or name.endswith("_config")):
            yield name, value


def _configs(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield fields
    for _name, sub in _sub_configs(fields):
        yield from _configs(sub)


def _width_divisor(fields: Mapping[str, Any], plan: Plan) -> int:
    """The largest power of two by which every width can be divided within the plan."""
    if not plan.smallest_head:
        return 1
    heads: list[int] = []
    widest = 0
    for config in _configs(fields):
        widest = max([widest, *(value for name, value in config.items() if _is_hidden_size(name, value))])
        heads += _head_dimensions(config)
    if not heads:
        return 1
    divisor = 1
    while widest // (divisor * 2) >= plan.widest and all(
        head % (divisor * 2) == 0 and head // (divisor * 2) >= plan.smallest_head for head in heads
    ):
        divisor *= 2
    return divisor


def _is_hidden_size(name: str, value: Any) -> bool:
    return _is_count(value) and re.search(r"hidden_size$|hidden_dim$|d_model$|n_embd$|embed_dim$", name) is not None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _head_dimensions(config: Mapping[str, Any]) -> list[int]:
    """Every head dimension that the config states, or that follows from a hidden size and a number of heads."""
    stated = [
        value
        for name, value in config.items()
        if _is_count(value) and value > 0 and re.search(r"head_dim$|d_kv$|d_head$|head_size$|qk_rope_head_dim", name)
    ]
    hidden = [value for name, value in config.items() if _is_hidden_size(name, value)]
    heads = [value for name, value in config.items() if _is_count(value) and value > 0 and _HEADS.search(name)]
    if not stated and hidden and heads:
        stated = [size // max(heads) for size in hidden if size >= max(heads)]
    return stated


def _special_ids(fields: Mapping[str, Any]) -> dict[int, int]:
    """New ids for the special tokens that lie beyond the small vocabulary: distinct ones at its upper end."""
    ids: set[int] = set()
    for config in _configs(fields):
        for name, value in config.items():
            if _TOKEN_ID.search(name):
                values = value if isinstance(value, (list, tuple)) else [value]
                ids.update(item for item in values if _is_count(item) and item >= _SMALL_VOCAB - 1)
    return {old: _SMALL_VOCAB - 2 - rank for rank, old in enumerate(sorted(ids))}


@dataclass(frozen=True, slots=True)
class _Shrinker:
    plan: Plan
    divisor: int
    special_ids: Mapping[int, int]

    def config(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        kept_layers = self._kept_layers(fields)
        small = {name: self._value(name, value, fields, kept_layers) for name, value in fields.items()}
        small |= {name: self.config(sub) for name, sub in _sub_configs(fields)}
        return small

    def _kept_layers(self, fields: Mapping[str, Any]) -> list[int]:
        """Indices of the layers to keep: the first of each kind that a list of layer types names, in order."""
        count = next(
            (v for n, v in fields.items() if n in ("num_hidden_layers", "n_layer", "num_layers") and _is_count(v)), 0
        )
        types = next(
            (v for n, v in fields.items() if n.endswith("layer_types") and isinstance(v, list) and len(v) == count),
            None,
        )
        first = {kind: types.index(kind) for kind in reversed(types)} if types else {}
        kept = sorted(set(first.values()))
        for index in range(count):
            if len(kept) >= min(self.plan.layers, count):
                break
            if index not in kept:
                kept.append(index)
        return sorted(kept)

    def _value(self, name: str, value: Any, fields: Mapping[str, Any], kept_layers: list[int]) -> Any:
        if isinstance(value, (list, tuple)):
            return self._list(name, list(value), fields, kept_layers)
        if not _is_count(value):
            return value
        for applies, small in self._rules(name, value, fields, kept_layers):
            if applies:
                return small
        return value

    def _rules(
        self, name: str, value: int, fields: Mapping[str, Any], kept_layers: list[int]
    ) -> Iterator[tuple[bool, int]]:
        plan = self.plan
        is_layers = _LAYERS.search(name) is not None and not _NOT_LAYERS.search(name)
        yield is_layers, min(value, max(plan.layers, len(kept_layers)))
        yield plan.shrinks_vocabulary and _VOCAB.search(name) is not None, min(value, _SMALL_VOCAB)
        yield plan.shrinks_vocabulary and _TOKEN_ID.search(name) is not None, self._token_id(value, fields)
        yield _EXPERTS.search(name) is not None, min(value, _SMALL_EXPERTS)
        yield _CHOSEN_EXPERTS.search(name) is not None, min(value, 2)
        yield _EXPERT_GROUPS.search(name) is not None, min(value, 1)
        yield plan.shrinks_images and _IMAGE.search(name) is not None, self._image(value)
        yield plan.shrinks_windows and _SLIDING.search(name) is not None, min(value, _SMALL_WINDOW)
        yield self._is_width(name), self._width(value)

    def _is_width(self, name: str) -> bool:
        return _WIDTH.search(name) is not None and not _NOT_WIDTH.search(name)

    def _width(self, value: int) -> int:
        return value // self.divisor if value >= self.divisor and value % self.divisor == 0 else value

    def _token_id(self, value: int, fields: Mapping[str, Any]) -> int:
        if value == fields.get("vocab_size"):
            return min(value, _SMALL_VOCAB)
        return self.special_ids.get(value, value)

    def _image(self, value: int) -> int:
        while value > _SMALL_IMAGE and value % 2 == 0:
            value //= 2
        return value

    def _list(self, name: str, values: list[Any], fields: Mapping[str, Any], kept_layers: list[int]) -> list[Any]:
        layers = fields.get("num_hidden_layers", fields.get("n_layer", fields.get("num_layers")))
        if kept_layers and len(values) == layers and len(values) > len(kept_layers):
            return [self._item(name, values[index]) for index in kept_layers]
        if _DEPTHS.search(name) and all(_is_count(value) for value in values):
            return [min(value, 2) for value in values]
        if "ind" in name or "idx" in name or "layer_ids" in name or name.endswith("_layers"):
            return self._indices(values, len(kept_layers))
        return [self._item(name, value) for value in values]

    def _indices(self, values: list[Any], layers: int) -> list[Any]:
        """Indices of layers: those that are left, or the last one."""
        if not layers or not all(_is_count(value) for value in values) or all(value < layers for value in values):
            return values
        return sorted({min(value, layers - 1) for value in values})

    def _item(self, name: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._item(name, item) for item in value]
        if not _is_count(value):
            return value
        if self.plan.shrinks_vocabulary and _TOKEN_ID.search(name):
            return self.special_ids.get(value, value)
        if self.plan.shrinks_images and _IMAGE.search(name):
            return self._image(value)
        return self._width(value) if self._is_width(name) else value


def megabytes(count: int) -> int:
    """Of so many float32 parameters."""
    return math.ceil(count * 4 / 1e6)
