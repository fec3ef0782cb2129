"""Names that mean the same in two code bases: the path of a module in words that both share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_WRAPPERS = frozenset(
    [
        "model",
        "module",
        "modules",
        "net",
        "network",
        "transformer",
        "backbone",
        "base_model",
        "trunk",
        "body",
        "stack",
        "inner",
        "wrapped",
        "main",
        "core",
        "text_model",
        "language_model",
        "lm",
        "bert",
        "roberta",
        "gpt",
        "gpt2",
        "gpt_neox",
        "llama",
        "vit",
        "deit",
        "electra",
        "distilbert",
        "albert",
        "_orig_mod",
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
        "base_layer",
    ]
)
"""Levels that one code base has and another does without."""

_CODERS = frozenset(("encoder", "decoder"))
"""Wrappers as well, unless the model has both."""

_WORDS: Mapping[str, str] = {
    word: canonical
    for canonical, words in {
        "attention": "self_attn self_attention attn attention att selfattention mha multi_head_attention self mixer "
        "self_attention_layer attn_layer attention_layer sa",
        "crossattention": "cross_attn encoder_attn crossattention cross_attention encdecattention ca",
        "mlp": "mlp feed_forward ffn ff feedforward ffw mlp_block feed_forward_layer feed_forward_module",
        "q": "q_proj query wq q q_lin to_q query_proj linear_q w_q q_linear proj_q query_layer fc_q",
        "k": "k_proj key wk k k_lin to_k key_proj linear_k w_k k_linear proj_k key_layer fc_k",
        "v": "v_proj value wv v v_lin to_v value_proj linear_v w_v v_linear proj_v value_layer fc_v",
        "qkv": "qkv qkv_proj c_attn query_key_value wqkv in_proj to_qkv att_proj w_pack w_qkv qkv_linear attn_qkv",
        "o": "o_proj out_proj wo o to_out out_lin linear_out o_linear output_proj w_o proj_out_attn fc_o",
        "gate": "gate_proj wi_0 linear_gate gate_layer w_gate",
        "up": "up_proj wi_1 fc1 c_fc dense_h_to_4h lin1 linear1 linear_1 intermediate w_up fc_in wi",
        "down": "down_proj fc2 dense_4h_to_h lin2 linear2 linear_2 w_down fc_out",
        "gateup": "gate_up_proj gate_and_up_proj w13 fused_gate_up gate_up",
        "layer": "layers h blocks block layer resblocks encoder_layers decoder_layers cells stages",
        "embedding": "embed_tokens wte tok_embeddings word_embeddings token_embedding tok_emb token_embeddings "
        "word_embedding embed tok_embedding embed_in shared embedding token_emb",
        "positions": "wpe position_embeddings embed_positions pos_embed position_embedding positional_embedding "
        "pos_embedding pos_emb positions",
        "types": "token_type_embeddings segment_embeddings tokentype_embeddings",
        "norm1": "input_layernorm attention_norm ln_1 ln1 norm1 layernorm_before layer_norm1 attn_norm pre_attn_norm "
        "self_attn_layer_norm norm_1 pre_attention_layernorm operator_norm attn_ln",
        "norm2": "post_attention_layernorm ffn_norm ln_2 ln2 norm2 layernorm_after layer_norm2 mlp_norm norm_2 "
        "pre_mlp_norm feed_forward_norm pre_mlp_layernorm mlp_ln",
        "norm": "norm ln_f final_layernorm final_layer_norm layernorm layer_norm ln_post f_norm final_norm ln ln_final "
        "norm_f post_layernorm",
        "qnorm": "q_norm norm_q q_layernorm query_norm q_ln ln_q query_layernorm",
        "knorm": "k_norm norm_k k_layernorm key_norm k_ln ln_k key_layernorm",
        "head": "lm_head output head embed_out unembed to_logits classifier score logits_proj",
        "router": "router gate gating switch gate_network moe_gate",
        "rotary": "rotary_emb rope rotary rotary_embedding rotary_pos_emb rot_emb",
        "act": "act_fn act activation activation_fn nonlinearity act_layer intermediate_act_fn gelu silu relu",
        "drop": "dropout drop drop_path resid_dropout attn_dropout hidden_dropout",
        "patch": "patch_embed patch_embeddings patch_embedding patch_projection",
        "experts": "experts expert",
        "moe": "block_sparse_moe moe sparse_moe moe_layer",
    }.items()
    for word in words.split()
}

_AFTER: Mapping[tuple[str, str], str] = {
    ("attention", "c_proj"): "o",
    ("attention", "proj"): "o",
    ("attention", "dense"): "o",
    ("attention", "output"): "o",
    ("attention", "out"): "o",
    ("crossattention", "out"): "o",
    ("crossattention", "output"): "o",
    ("mlp", "c_proj"): "down",
    ("mlp", "wo"): "down",
    ("mlp", "output"): "down",
    ("layer", "intermediate"): "up",
    ("layer", "output"): "down",
    ("patch", "proj"): "patch",
    ("patch", "projection"): "patch",
}
"""A word whose meaning hangs on the one before it."""

_SILENT = frozenset(("dense",))
"""Says nothing after a word that already names a matrix: `intermediate.dense`, `output.dense`."""


def canonical_paths(paths: Iterable[str]) -> dict[str, str]:
    """By path: its canonical form, root class and wrappers left out. Paths are of one model."""
    paths = list(paths)
    steps = {path: path.split(".")[1:] for path in paths}
    used = {step for path in paths for step in steps[path]}
    silent = _WRAPPERS if used >= _CODERS else _WRAPPERS | _CODERS
    return {path: ".".join(_canonical(steps[path], silent)) for path in paths}


def _canonical(steps: list[str], silent: frozenset[str]) -> list[str]:
    words: list[str] = []
    for step in steps:
        previous = "layer" if words and words[-1].isdigit() else words[-1] if words else ""
        word = _AFTER.get((previous, step.lower())) or _word(step)
        if word in _SILENT and previous in ("o", "up", "down"):
            continue
        if word in silent or word == previous:
            continue
        if previous == "mlp" and word in ("gate", "up", "down", "gateup", "act"):
            words.pop()  # not every code base gives the feed-forward part a module of its own
        words.append(word)
    return words


def _word(step: str) -> str:
    if step.isdigit() or step.endswith("()"):
        return step
    lower = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", step).lower()
    return _WORDS.get(lower) or _WORDS.get(lower.replace("_", "")) or lower


_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("norm", re.compile(r"norm|(?:^|[a-z])LN$|LayerNorm", re.I)),
    ("embedding", re.compile(r"^embedding$|wordembedding|tokenembedding|positionalembedding", re.I)),
    ("rotary", re.compile(r"rotary|rope", re.I)),
    ("linear", re.compile(r"^(linear|conv1d|dense|.*linear|nonDynamicallyQuantizableLinear)$", re.I)),
    ("conv", re.compile(r"conv\d?d?$", re.I)),
    ("activation", re.compile(r"gelu|silu|relu|swish|mish|tanh|sigmoid|activation$|softplus", re.I)),
    ("dropout", re.compile(r"dropout|droppath", re.I)),
    ("attention", re.compile(r"attention|attn", re.I)),
    ("experts", re.compile(r"moe|experts?$|sparse", re.I)),
    ("mlp", re.compile(r"mlp|feedforward|ffn|gated", re.I)),
    ("layer", re.compile(r"layer$|block$", re.I)),
)


_KINDS_OF_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("q", "k", "v", "qkv", "o", "gate", "up", "down", "gateup", "head"), "linear"),
    **dict.fromkeys(("norm", "norm1", "norm2", "qnorm", "knorm"), "norm"),
    **dict.fromkeys(("embedding", "positions", "types"), "embedding"),
    "act": "activation",
    "drop": "dropout",
    "rotary": "rotary",
    "attention": "attention",
    "mlp": "mlp",
}


def kind_of(class_name: str, canonical: str = "") -> str:
    """A word for what a module does, from the name of its class or else from its own; empty where neither tells."""
    by_class = next((kind for kind, pattern in _KINDS if pattern.search(class_name)), "")
    return by_class or _KINDS_OF_WORDS.get(canonical.rpartition(".")[2], "")
