"""Complete a small config: what its model cannot be made without, or not with the packages that are here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from twinlens.tracing import fields as names
from twinlens.tracing.fields import is_count


def with_dividing_heads(fields: dict[str, Any]) -> dict[str, Any]:
    """Some defaults have a number of heads that does not divide the hidden size; such a model cannot be made."""
    hidden, heads = fields.get("hidden_size"), fields.get("num_attention_heads")
    stated = any(names.HEAD_SIZE.search(name) and value for name, value in fields.items())
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads) or stated or hidden % heads == 0:
        return fields
    return {**fields, "num_attention_heads": math.gcd(hidden, heads)}


def with_head_dimension(fields: dict[str, Any]) -> dict[str, Any]:
    """Where they are left out: the head dimension, and its parts for positions of three axes."""
    hidden, heads = fields.get("hidden_size"), fields.get("num_attention_heads")
    if not (isinstance(hidden, int) and isinstance(heads, int) and heads):
        return fields
    dimension = fields.get("head_dim") or hidden // heads
    filled = {**fields, "head_dim": dimension} if "head_dim" in fields else fields
    rope = fields.get("rope_parameters")
    if not isinstance(rope, Mapping) or "rope_theta" not in rope or "mrope_section" in rope:
        return filled
    pairs = int(dimension * rope.get("partial_rotary_factor", 1.0)) // 2
    return {**filled, "rope_parameters": {**rope, "mrope_section": [pairs - 2 * (pairs // 3), *[pairs // 3] * 2]}}


def with_aligned_experts(fields: dict[str, Any]) -> dict[str, Any]:
    """torch's grouped matrix product, which experts run on, wants rows of a multiple of 16 bytes."""
    return {
        name: value - value % 16 if name == "moe_intermediate_size" and is_count(value) and value > 16 else value
        for name, value in fields.items()
    }


def with_available_backbone(fields: dict[str, Any]) -> dict[str, Any]:
    """A convolutional backbone of transformers in place of timm's, where timm is not installed."""
    backbone = fields.get("backbone_config")
    if not isinstance(backbone, Mapping) or backbone.get("model_type") != "timm_backbone" or find_spec("timm"):
        return fields
    stages = [f"stage{index}" for index in range(1, 5)]
    wanted = [stages[index - 1] for index in backbone.get("out_indices") or [4] if 1 <= index <= 4]
    return {
        **fields,
        "backbone_config": {
            "model_type": "resnet",
            "embedding_size": 16,
            "hidden_sizes": [16, 32, 48, 64],
            "depths": [1, 1, 1, 1],
            "layer_type": "basic",
            "out_features": wanted or stages[-1:],
        },
    }
