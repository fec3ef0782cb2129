"""A port of the decoder with other names, and what a porter gets wrong.

It splits the fused matrix and rotates halves.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from .decoder import AuthorsDecoder, DecoderConfig, mask
from .decoder_parts import (
    DecoderKnobs,
    PortRMSNorm,
    PortRotaryEmbedding,
    activation,
    joined_heads,
    norm_all_heads,
    rotate_every_two,
    rotate_half,
)


class PortAttention(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs, is_local: bool):
        super().__init__()
        size = config.head_size
        self.knobs = knobs
        self.head_dim = size
        self.num_key_value_groups = config.heads // config.kv_heads
        self.scaling = knobs.attention_scale or size**-0.5
        window = config.window if knobs.window == "same" else knobs.window
        self.sliding_window = window if is_local else None
        self.softcap = config.attention_cap if knobs.attention_cap == "same" else knobs.attention_cap
        self.q_proj = nn.Linear(config.hidden, config.heads * size, bias=config.query_bias)
        self.k_proj = nn.Linear(config.hidden, config.kv_heads * size, bias=config.query_bias)
        self.v_proj = nn.Linear(config.hidden, config.kv_heads * size, bias=config.query_bias)
        self.o_proj = nn.Linear(config.heads * size, config.hidden, bias=False)
        if config.qk_norm:
            eps, offset = knobs.eps or config.eps, config.norm_offset
            self.q_norm = PortRMSNorm(size, eps, offset)
            self.k_norm = PortRMSNorm(size, eps, offset)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        knobs, (batch, length, _) = self.knobs, hidden_states.shape
        q, k, v = self.q_proj(hidden_states), self.k_proj(hidden_states), self.v_proj(hidden_states)
        k, v = (v, k) if knobs.swaps_keys_and_values else (k, v)
        q, k, v = (x.view(batch, length, -1, self.head_dim).transpose(1, 2) for x in (q, k, v))
        norms_late = hasattr(self, "q_norm") and knobs.qk_norm == "after rotation"
        if hasattr(self, "q_norm") and knobs.qk_norm in ("heads", "all heads"):
            q, k = self._normed(q, k)
        cos, sin = (table.unsqueeze(1) for table in position_embeddings)
        q, k, v = (
            self._rotated(x, cos, sin) if letter in knobs.rotated else x
            for letter, x in zip("qkv", (q, k, v), strict=True)
        )
        if norms_late:
            q, k = self._normed(q, k)
        groups = self.num_key_value_groups
        k = k.repeat(1, groups, 1, 1) if knobs.tiles_heads else k.repeat_interleave(groups, 1)
        tiles_values = knobs.tiles_heads or knobs.tiles_values
        v = v.repeat(1, groups, 1, 1) if tiles_values else v.repeat_interleave(groups, 1)
        padding = None if knobs.sees_padding else attention_mask
        if knobs.is_causal:
            bias = mask(length, self.sliding_window, padding, q.dtype)
        else:
            bias = torch.zeros(1, 1, length, length, dtype=q.dtype)
        if not knobs.sees_itself:
            bias = bias.masked_fill(torch.eye(length, dtype=torch.bool), torch.finfo(q.dtype).min)
        if knobs.masked_rows == "nan":
            bias = bias.masked_fill(bias < -1, -math.inf)
        if knobs.uses_sdpa:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scaling)
        else:
            scores = q @ k.transpose(2, 3) * self.scaling
            if self.softcap:
                scores = self.softcap * torch.tanh(scores / self.softcap)
            context = (scores + bias).softmax(knobs.softmax_axis, dtype=torch.float32).to(q.dtype) @ v
        joined = joined_heads(context, knobs.joins)
        return joined if knobs.skips == "o_proj" else self.o_proj(joined)

    def _normed(self, q, k):
        if self.knobs.qk_norm != "all heads":
            return self.q_norm(q), self.k_norm(k)
        return (norm_all_heads(x, norm) for x, norm in ((q, self.q_norm), (k, self.k_norm)))

    def _rotated(self, x, cos, sin):
        turn = rotate_every_two if self.knobs.is_interleaved else rotate_half
        sin = -sin if self.knobs.rotates_back else sin
        size = cos.shape[-1]
        return torch.cat((x[..., :size] * cos + turn(x[..., :size]) * sin, x[..., size:]), -1)


class PortMLP(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        self.swaps = knobs.swaps_gate_and_up
        self.product = knobs.product
        self.fused = knobs.fused_gate
        self.limits = (config.gate_limit,) * 2 if knobs.gate_limits == "same" else knobs.gate_limits
        self.shift = knobs.up_shift
        if self.fused:
            self.gate_up_proj = nn.Linear(config.hidden, 2 * config.inner, bias=False)
        else:
            self.gate_proj = nn.Linear(config.hidden, config.inner, bias=False)
            self.up_proj = nn.Linear(config.hidden, config.inner, bias=False)
        self.down_proj = nn.Linear(config.inner, config.hidden, bias=False)
        self.act_fn = activation(knobs.gelu or config.gelu)

    def forward(self, hidden_states):
        gate, up = self._factors(hidden_states)
        if self.swaps:
            gate, up = up, gate
        if self.limits[0]:
            gate = gate.clamp(max=self.limits[0])
        if self.limits[1]:
            up = up.clamp(-self.limits[1], self.limits[1])
        up = up + self.shift
        made = {
            "act(gate) * up": lambda: self.act_fn(gate) * up,
            "gate * up": lambda: gate * up,
            "act(gate * up)": lambda: self.act_fn(gate * up),
            "act(gate) * act(up)": lambda: self.act_fn(gate) * self.act_fn(up),
            "act(gate)": lambda: self.act_fn(gate),
        }[self.product]
        return self.down_proj(made())

    def _factors(self, hidden_states):
        if not self.fused:
            return self.gate_proj(hidden_states), self.up_proj(hidden_states)
        both = self.gate_up_proj(hidden_states)
        return both.chunk(2, -1) if self.fused == "halves" else (both[..., ::2], both[..., 1::2])


class PortDecoderLayer(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs, index: int):
        super().__init__()
        eps = knobs.eps or config.eps
        offset = config.norm_offset if knobs.norm_offset is None else knobs.norm_offset
        self.topology = knobs.topology
        self.skips = knobs.skips
        self.self_attn = PortAttention(config, knobs, is_local=index % 2 == 0)
        self.mlp = PortMLP(config, knobs)
        self.input_layernorm = PortRMSNorm(config.hidden, eps, offset, knobs.norm_casts_first, knobs.norm)
        self.post_attention_layernorm = PortRMSNorm(config.hidden, eps, offset, knobs.norm_casts_first, knobs.norm)
        self.dropout = nn.Dropout(knobs.dropout)
        self.exchanged_norms = knobs.exchanged_norms
        if config.post_norms:
            self.attention_out_norm = PortRMSNorm(config.hidden, eps, offset)
            self.mlp_out_norm = PortRMSNorm(config.hidden, eps, offset)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        first, second = self.input_layernorm, self.post_attention_layernorm
        second = first if self.skips == "second norm" else second
        first, second = (second, first) if self.exchanged_norms == "before" else (first, second)
        normed = hidden_states if self.skips == "first norm" else first(hidden_states)
        attended = self.dropout(self.self_attn(normed, position_embeddings, attention_mask))
        if hasattr(self, "attention_out_norm"):
            return self._with_post_norms(hidden_states, attended, second)
        if self.topology == "parallel":
            return hidden_states + attended + self.mlp(second(hidden_states))
        hidden_states = (normed if self.topology == "residual after norm" else hidden_states) + attended
        normed = second(hidden_states)
        if self.topology == "no second residual":
            return self.mlp(normed)
        return hidden_states + self.mlp(normed)

    def _with_post_norms(self, hidden_states, attended, second):
        norms = self.attention_out_norm, self.mlp_out_norm
        first_out, second_out = reversed(norms) if self.exchanged_norms == "behind" else norms
        if self.topology == "norm of the sum":
            hidden_states = first_out(hidden_states + attended)
            return second_out(hidden_states + self.mlp(second(hidden_states)))
        hidden_states = hidden_states + first_out(attended)
        return hidden_states + second_out(self.mlp(second(hidden_states)))


class PortModel(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab, config.hidden)
        self.layers = nn.ModuleList(PortDecoderLayer(config, knobs, index) for index in range(config.layers))
        eps = knobs.eps or config.eps
        offset = config.norm_offset if knobs.norm_offset is None else knobs.norm_offset
        self.norm = PortRMSNorm(config.hidden, eps, offset, knobs.norm_casts_first, knobs.norm)
        self.rotary_emb = PortRotaryEmbedding(config, knobs)
        self.embedding_scale = config.hidden**0.5 if config.embedding_scale else 1.0
        if knobs.embedding_scale is not None:
            self.embedding_scale = knobs.embedding_scale
        self.knobs = knobs

    def forward(self, input_ids, attention_mask=None):
        hidden_states = self.embed_tokens(input_ids) * self.embedding_scale
        positions = torch.arange(input_ids.shape[1])[None] * (not self.knobs.positions_are_zero)
        position_embeddings = self.rotary_emb(hidden_states, positions)
        for index in self.knobs.order:
            hidden_states = self.layers[index](hidden_states, position_embeddings, attention_mask)
        return hidden_states if self.knobs.skips == "final norm" else self.norm(hidden_states)


class PortForCausalLM(nn.Module):
    def __init__(self, config: DecoderConfig, knobs: DecoderKnobs):
        super().__init__()
        self.config = config
        self.model = PortModel(config, knobs)
        self.lm_head = nn.Linear(config.hidden, config.vocab, bias=config.head_bias)
        self.lm_head.weight = self.model.embed_tokens.weight
        self.cap = config.logit_cap if knobs.logit_cap == "same" else knobs.logit_cap

    def forward(self, input_ids, attention_mask=None):
        logits = self.lm_head(self.model(input_ids, attention_mask)).float()
        return torch.tanh(logits / self.cap) * self.cap if self.cap else logits


def halves_from_pairs(rows, heads):
    """Rows of a matrix whose heads hold pairs (0, 1), (2, 3) …, as heads that hold halves."""
    grouped = rows.view(heads, -1, 2, *rows.shape[1:])
    return grouped.transpose(1, 2).reshape(rows.shape)


def converted(original: AuthorsDecoder) -> dict[str, torch.Tensor]:
    """The port's state dict, as a right conversion script makes it."""
    config, theirs = original.config, original.state_dict()
    size, heads, kv_heads = config.head_size, config.heads, config.kv_heads
    ours = {
        "model.embed_tokens.weight": theirs["tok_embeddings.weight"],
        "lm_head.weight": theirs["tok_embeddings.weight"],
        "model.norm.weight": theirs["norm.scale"],
    }
    if config.head_bias:
        ours["lm_head.bias"] = theirs["output.bias"]
    renamed = {
        "attention_norm.scale": "input_layernorm.weight",
        "ffn_norm.scale": "post_attention_layernorm.weight",
        "attention.wo.weight": "self_attn.o_proj.weight",
        "feed_forward.w1.weight": "mlp.gate_proj.weight",
        "feed_forward.w2.weight": "mlp.down_proj.weight",
        "feed_forward.w3.weight": "mlp.up_proj.weight",
    }
    for index in range(config.layers):
        old, new = f"layers.{index}.", f"model.layers.{index}."
        ours |= {new + name: theirs[old + theirs_name] for theirs_name, name in renamed.items()}
        if config.post_norms:
            ours[f"{new}attention_out_norm.weight"] = theirs[f"{old}post_attention_norm.scale"]
            ours[f"{new}mlp_out_norm.weight"] = theirs[f"{old}post_ffn_norm.scale"]
        for kind in ("weight", "bias") if config.query_bias else ("weight",):
            q, k, v = theirs[f"{old}attention.wqkv.{kind}"].split([heads * size, kv_heads * size, kv_heads * size])
            ours[f"{new}self_attn.q_proj.{kind}"] = halves_from_pairs(q, heads)
            ours[f"{new}self_attn.k_proj.{kind}"] = halves_from_pairs(k, kv_heads)
            ours[f"{new}self_attn.v_proj.{kind}"] = v
        if config.qk_norm:
            for letter in "qk":
                scale = theirs[f"{old}attention.norm_{letter}.scale"]
                ours[f"{new}self_attn.{letter}_norm.weight"] = halves_from_pairs(scale, 1)
    return {name: tensor.clone() for name, tensor in ours.items()}
