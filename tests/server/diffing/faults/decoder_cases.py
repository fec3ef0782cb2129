"""Faults in the decoder's port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from .decoder import DecoderConfig
from .decoder_build import (
    Weights,
    build,
    fill_frequencies,
    fuse_gate_and_up,
    leave_pairs,
    permute_twice,
    split_by_head,
    swap_gate_and_up,
    swap_norms,
    train,
    transpose,
    untie,
)
from .decoder_parts import DecoderKnobs
from .decoder_port import PortForCausalLM
from .pairs import Case, zero

BOTH = ("float32", "bfloat16")
LAYER = "model.layers.0."
ATTENTION = f"{LAYER}self_attn"
PLAIN = DecoderConfig()
SMALL = replace(PLAIN, embedding_scale=False)
NORMED = replace(PLAIN, qk_norm=True)
LIMITED = replace(PLAIN, gate_limit=1.0)
POST_NORMED = replace(PLAIN, post_norms=True)
LOCAL = replace(PLAIN, window=9)
RIGHT = DecoderKnobs()


def case(
    name: str,
    code: str,
    origin: str | tuple[str, ...],
    *,
    config: DecoderConfig = PLAIN,
    dtypes: tuple[str, ...] = BOTH,
    change: Callable[[Weights, DecoderConfig], None] | None = None,
    after: Callable[[PortForCausalLM], None] | None = None,
    pads: bool = False,
    length: int = 28,
    **knobs: object,
) -> Case:
    origins = (origin,) if isinstance(origin, str) else origin
    made = partial(build, config, DecoderKnobs(**knobs), change, after, pads=pads, length=length)  # type: ignore[arg-type]
    return Case(name, "decoder", made, {code: origins} if code else {}, dtypes)


MLP = (f"{LAYER}mlp.act_fn", f"{LAYER}mlp")
FUSED_MLP = (MLP[1], f"{MLP[1]}.gate_up_proj")
NORM = f"{LAYER}input_layernorm"
ROTARY = ("model.rotary_emb", ATTENTION)
FUSED = (ATTENTION, f"{ATTENTION}.q_proj", f"{ATTENTION}.k_proj", f"{ATTENTION}.v_proj")

CASES = (
    case("norm without its 1 +", "rmsnorm-offset", NORM, norm_offset=0.0),
    case("norm with 1 + twice", "rmsnorm-offset", NORM, config=replace(PLAIN, norm_offset=0.0), norm_offset=1.0),
    case("eps 1e-5 for 1e-6", "eps", NORM, config=SMALL, eps=1e-5, dtypes=("float32",)),
    case("eps 1e-5 for 1e-6 on large inputs", "eps", NORM, eps=1e-5, dtypes=("float32",)),
    case("eps 1e-3 for 1e-6", "eps", NORM, config=SMALL, eps=1e-3),
    # Rows for halves and a rotation of pairs: either may be mended, so that both places are right.
    case("interleaved rotation of halves", "rope-layout", FUSED, is_interleaved=True),
    case("rows of q and k not permuted", "rope-layout", FUSED, change=leave_pairs),
    case("rows of q and k permuted twice", "rope-layout", FUSED, change=permute_twice),
    case("theta 500000 for 10000", "rope-base", ROTARY, theta=500000.0),
    case("theta 10500 for 10000", "rope-base", ROTARY, theta=10500.0, dtypes=("float32",)),
    case("half of the head rotated", "rope-base", ROTARY, rotary_share=0.5),
    case(
        "frequencies in bfloat16",
        "low-precision-frequencies",
        ROTARY,
        frequencies_dtype=torch.bfloat16,
        dtypes=("float32",),
    ),
    case("frequencies zero", "buffer-not-initialised", ROTARY, after=partial(fill_frequencies, "zeros")),
    case("frequencies garbage", "buffer-not-initialised", ROTARY, after=partial(fill_frequencies, "garbage")),
    case("fused projection split by head", "fused-order", FUSED, change=split_by_head),
    case("gate and up exchanged in code", "gate-up-swapped", f"{LAYER}mlp", swaps_gate_and_up=True),
    case(
        "gate and up exchanged in weights",
        "gate-up-swapped",
        (f"{LAYER}mlp.gate_proj", f"{LAYER}mlp.up_proj", f"{LAYER}mlp"),
        change=swap_gate_and_up,
    ),
    case(
        "gate and up exchanged in code under limits", "gate-up-swapped", MLP[1], config=LIMITED, swaps_gate_and_up=True
    ),
    case(
        "fused gate and up taken apart by columns",
        "gate-up-swapped",
        FUSED_MLP,
        change=fuse_gate_and_up,
        fused_gate="columns",
    ),
    case(
        "alternating rows of gate and up taken apart in halves",
        "gate-up-swapped",
        FUSED_MLP,
        config=LIMITED,
        change=partial(fuse_gate_and_up, alternates=True),
        fused_gate="halves",
    ),
    case("limits of gate and up missing", "activation-variant", MLP[1], config=LIMITED, gate_limits=(None, None)),
    case("limit of up missing", "activation-variant", MLP[1], config=LIMITED, gate_limits=(1.0, None)),
    case("limits of gate and up 2 for 1", "activation-variant", MLP[1], config=LIMITED, gate_limits=(2.0, 2.0)),
    case("quick GELU for tanh GELU under limits", "activation-variant", MLP, config=LIMITED, gelu="quick"),
    case("1 added to up under limits", "activation-variant", MLP[1], config=LIMITED, up_shift=1.0),
    case("o_proj transposed", "transposed-weight", f"{ATTENTION}.o_proj", change=partial(transpose, "o_proj", 0)),
    case(
        "q_proj of layer 1 transposed",
        "transposed-weight",
        "model.layers.1.self_attn.q_proj",
        change=partial(transpose, "q_proj", 1),
    ),
    case(
        "erf GELU for tanh GELU",
        "activation-variant",
        (f"{LAYER}mlp.act_fn", f"{LAYER}mlp"),
        gelu="none",
        dtypes=("float32",),
    ),
    case("quick GELU for tanh GELU", "activation-variant", (f"{LAYER}mlp.act_fn", f"{LAYER}mlp"), gelu="quick"),
    case("ReLU for GELU", "activation-variant", (f"{LAYER}mlp.act_fn", f"{LAYER}mlp"), gelu="relu"),
    case("SiLU for GELU", "activation-variant", (f"{LAYER}mlp.act_fn", f"{LAYER}mlp"), gelu="silu"),
    case("embedding not scaled", "embedding-scale", "model", embedding_scale=1.0),
    case("embedding scaled twice", "embedding-scale", "model", embedding_scale=64.0),
    case("attention scaled by hidden size", "attention-scale", ATTENTION, attention_scale=64**-0.5),
    case("attention not scaled", "attention-scale", ATTENTION, attention_scale=1.0),
    case("attention cap missing", "soft-cap", ATTENTION, config=replace(PLAIN, attention_cap=3.0), attention_cap=None),
    case("attention cap 50 for 3", "soft-cap", ATTENTION, config=replace(PLAIN, attention_cap=3.0), attention_cap=50.0),
    case(
        "attention scaled by hidden size under a cap",
        "attention-scale",
        ATTENTION,
        config=replace(PLAIN, attention_cap=3.0),
        attention_scale=64**-0.5,
    ),
    case(
        "rotated backwards under a cap",
        "rope-direction",
        ATTENTION,
        config=replace(PLAIN, attention_cap=3.0),
        rotates_back=True,
    ),
    case("normed q and k not rotated", "rope-applied", ATTENTION, config=NORMED, rotated=""),
    case("logit cap missing", "soft-cap", "", config=replace(PLAIN, logit_cap=4.0), logit_cap=None),
    case("window 10 for 9", "sliding-window", ATTENTION, config=LOCAL, window=10),
    case("window 8 for 9", "sliding-window", ATTENTION, config=LOCAL, window=8),
    case("window not passed", "mask-missing", ATTENTION, config=LOCAL, window=None),
    case("no causal mask", "mask-missing", ATTENTION, is_causal=False),
    case("padding mask ignored", "mask-missing", ATTENTION, pads=True, sees_padding=True),
    case("NaN on rows without a key", "fully-masked-rows", ATTENTION, pads=True, masked_rows="nan"),
    case("heads tiled", "gqa-layout", ATTENTION, tiles_heads=True),
    case("q and k normed over all heads", "qk-norm", ATTENTION, config=NORMED, qk_norm="all heads"),
    case("q and k normed after rotation", "qk-norm", ATTENTION, config=NORMED, qk_norm="after rotation"),
    case("q and k not normed", "qk-norm", ATTENTION, config=NORMED, qk_norm="none"),
    case("parallel block", "residual-topology", "model.layers.0", topology="parallel"),
    case("residual taken after the norm", "residual-topology", "model.layers.0", topology="residual after norm"),
    case("second residual missing", "residual-topology", "model.layers.0", topology="no second residual"),
    case("head not tied", "head-not-tied", "lm_head", after=untie),
    case("query bias zero", "missing-bias", f"{ATTENTION}.q_proj", change=partial(zero, "q_proj.bias")),
    case(
        "head bias dropped",
        "missing-bias",
        "lm_head",
        config=replace(PLAIN, head_bias=True),
        change=partial(zero, "lm_head.bias"),
    ),
    case("softmax over the queries", "softmax-axis", ATTENTION, softmax_axis=-2),
    case("softmax over the heads", "softmax-axis", ATTENTION, softmax_axis=1),
    case("values rotated too", "rope-applied", ATTENTION, rotated="qkv"),
    case("keys not rotated", "rope-applied", ATTENTION, rotated="q"),
    case("queries not rotated", "rope-applied", ATTENTION, rotated="k"),
    case("nothing rotated", "rope-applied", ATTENTION, rotated=""),
    case("rotated backwards", "rope-direction", ATTENTION, rotates_back=True),
    case("cos and sin exchanged", "cos-sin-swapped", ROTARY, swaps_tables=True),
    case("every position zero", "position-offset", ROTARY, positions_are_zero=True),
    case("heads not transposed back", "head-merge", ATTENTION, joins="heads before tokens"),
    case("heads joined behind their sizes", "head-merge", ATTENTION, joins="heads behind sizes"),
    case("value heads tiled", "gqa-layout", ATTENTION, tiles_values=True),
    case("keys and values exchanged", "fused-order", FUSED, swaps_keys_and_values=True),
    case("own key blocked", "mask-missing", ATTENTION, sees_itself=False),
    case("norm by the sum of squares", "norm-formula", NORM, norm="sum"),
    case("norm by the unbiased variance", "norm-formula", NORM, norm="unbiased", dtypes=("float32",)),
    case("norm without its weight", "norm-formula", NORM, norm="no weight"),
    case("layer norm for RMS norm", "norm-formula", NORM, norm="mean taken off"),
    case("eps after the root", "eps", NORM, config=replace(SMALL, eps=1e-3), norm="eps after the root"),
    case("no activation", "activation-variant", f"{LAYER}mlp", product="gate * up"),
    case("activation of the product", "activation-place", f"{LAYER}mlp", product="act(gate * up)"),
    case("activation of both factors", "activation-place", f"{LAYER}mlp", product="act(gate) * act(up)"),
    case("up left out", "activation-place", f"{LAYER}mlp", product="act(gate)"),
    case("final norm forgotten", "not-called", "model", skips="final norm"),
    case("first norm forgotten", "not-called", "model.layers.0", skips="first norm"),
    case("second norm is the first", "not-called", "model.layers.0", skips="second norm"),
    case("output projection forgotten", "not-called", ATTENTION, skips="o_proj"),
    case("last layer skipped", "not-called", "model", order=(0, 1)),
    case("first layer skipped", "not-called", "model", order=(1, 2)),
    case("layer run twice", "extra-call", "model.layers.1", order=(0, 1, 1, 2)),
    case("layers in another order", "call-order", "model", order=(0, 2, 1)),
    case("norms before the branches exchanged", "call-order", "model.layers.0", exchanged_norms="before"),
    case(
        "norms behind the branches exchanged",
        "call-order",
        "model.layers.0",
        config=POST_NORMED,
        exchanged_norms="behind",
    ),
    case(
        "weights of the norms behind the branches exchanged",
        "call-order",
        "model.layers.0",
        config=POST_NORMED,
        change=partial(swap_norms, "attention_out_norm", "mlp_out_norm"),
    ),
    case(
        "norm of the sum for that of the branch",
        "residual-topology",
        "model.layers.0",
        config=POST_NORMED,
        topology="norm of the sum",
    ),
    case("norm cast before its weight", "cast-order", NORM, norm_casts_first=True, dtypes=("bfloat16",)),
    case("dropout left on", "train-mode", (f"{LAYER}dropout", "model.layers.0"), dropout=0.1, after=train),
)


def stacked(name: str, causes: dict[str, tuple[str, ...]], **settings: object) -> Case:
    made = case(name, "", (), **settings)  # type: ignore[arg-type]
    return Case(name, "decoder", made.build, causes, ("float32",))


STACKED = (
    stacked("eps and quick GELU", {"eps": (NORM,), "activation-variant": MLP}, config=SMALL, eps=1e-4, gelu="quick"),
    stacked(
        "rotation and a transposed projection",
        {"rope-layout": FUSED, "transposed-weight": ("model.layers.1.self_attn.o_proj",)},
        change=lambda weights, config: (leave_pairs(weights, config), transpose("o_proj", 1, weights, config)),
    ),
    stacked(
        "attention scale and parallel block",
        {"attention-scale": (ATTENTION,), "residual-topology": ("model.layers.0",)},
        attention_scale=64**-0.5,
        topology="parallel",
    ),
    stacked(
        "embedding not scaled, gate and up exchanged",
        {"embedding-scale": ("model",), "gate-up-swapped": (f"{LAYER}mlp",)},
        embedding_scale=1.0,
        swaps_gate_and_up=True,
    ),
    stacked(
        "norm offset and untied head",
        {"rmsnorm-offset": (NORM,), "head-not-tied": ("lm_head",)},
        norm_offset=0.0,
        after=untie,
    ),
    stacked(
        "tiled heads and a window of one more",
        {"gqa-layout": (ATTENTION,), "sliding-window": (ATTENTION,)},
        config=LOCAL,
        tiles_heads=True,
        window=10,
    ),
)


def control(
    name: str,
    config: DecoderConfig = PLAIN,
    *,
    dtypes: tuple[str, ...] = BOTH,
    port_dtype: str | None = None,
    pads: bool = False,
    change: Callable[..., None] | None = None,
    **knobs: object,
) -> Case:
    made = partial(build, config, DecoderKnobs(**knobs), change, pads=pads)  # type: ignore[arg-type]
    return Case(name, "decoder", made, {}, dtypes, port_dtype)


CONTROLS = (
    control("right port"),
    control("right port, sdpa for eager", uses_sdpa=True),
    control("right port with caps and a window", replace(LOCAL, attention_cap=3.0, logit_cap=4.0)),
    control("right port with normed q and k", NORMED),
    control("right port with norms behind the branches", POST_NORMED),
    control("right port with limits of gate and up", LIMITED),
    control("right port, gate and up fused", change=fuse_gate_and_up, fused_gate="halves"),
    control(
        "right port, rows of gate and up alternate",
        LIMITED,
        change=partial(fuse_gate_and_up, alternates=True),
        fused_gate="columns",
    ),
    control("right port, left padding", pads=True),
    control("bfloat16 port of a float32 original", dtypes=("float32",), port_dtype="bfloat16"),
    control("float16 port of a float32 original", dtypes=("float32",), port_dtype="float16"),
)
