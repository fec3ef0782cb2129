"""Lumen: a small decoder-only language model, as a porter would bring it from its authors' repository."""

import math

import torch
from torch import nn

from .configuration_lumen import LumenConfig


class LumenRMSNorm(nn.Module):
    """Scale each token to unit root mean square."""

    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        mean_square = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(mean_square + self.variance_epsilon)
        return self.weight * hidden_states.to(dtype)


class LumenRotaryEmbedding(nn.Module):
    def __init__(self, config: LumenConfig):
        super().__init__()
        head_dim = config.hidden_size // config.num_attention_heads
        exponents = torch.arange(0, head_dim, 2).float() / head_dim
        self.register_buffer("inv_freq", 1.0 / config.rope_theta**exponents, persistent=False)

    @torch.no_grad()
    def forward(self, hidden_states, position_ids):
        angles = position_ids[:, :, None].float() * self.inv_freq[None, None, :]
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(hidden_states.dtype), angles.sin().to(hidden_states.dtype)


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(query, key, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return query * cos + rotate_half(query) * sin, key * cos + rotate_half(key) * sin


class LumenMLP(nn.Module):
    def __init__(self, config: LumenConfig):
        super().__init__()
        self.config = config
        self.hidden_size = config.hidden_size
        self.intermediate_size = config.intermediate_size
        self.gate_proj = nn.Linear(self.hidden_size, self.intermediate_size, bias=False)
        self.up_proj = nn.Linear(self.hidden_size, self.intermediate_size, bias=False)
        self.down_proj = nn.Linear(self.intermediate_size, self.hidden_size, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LumenAttention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, config: LumenConfig, layer_idx: int):
        super().__init__()
        self.layer_idx = layer_idx
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.num_key_value_groups = config.num_attention_heads // config.num_key_value_heads
        self.q_proj = nn.Linear(config.hidden_size, config.num_attention_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * self.head_dim, config.hidden_size, bias=False)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        batch, length, _ = hidden_states.shape
        query = self.q_proj(hidden_states).view(batch, length, -1, self.head_dim).transpose(1, 2)
        key = self.k_proj(hidden_states).view(batch, length, -1, self.head_dim).transpose(1, 2)
        value = self.v_proj(hidden_states).view(batch, length, -1, self.head_dim).transpose(1, 2)

        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
        key = key.repeat_interleave(self.num_key_value_groups, dim=1)
        value = value.repeat_interleave(self.num_key_value_groups, dim=1)

        weights = query @ key.transpose(2, 3) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            weights = weights + attention_mask
        weights = weights.softmax(dim=-1)
        context = (weights @ value).transpose(1, 2).reshape(batch, length, -1)
        return self.o_proj(context), weights


class LumenDecoderLayer(nn.Module):
    def __init__(self, config: LumenConfig, layer_idx: int):
        super().__init__()
        self.self_attn = LumenAttention(config, layer_idx)
        self.mlp = LumenMLP(config)
        self.input_layernorm = LumenRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = LumenRMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        attended, _ = self.self_attn(self.input_layernorm(hidden_states), position_embeddings, attention_mask)
        hidden_states = hidden_states + attended
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class LumenModel(nn.Module):
    def __init__(self, config: LumenConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(LumenDecoderLayer(config, index) for index in range(config.num_hidden_layers))
        self.norm = LumenRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.rotary_emb = LumenRotaryEmbedding(config)

    def forward(self, input_ids, position_ids=None):
        hidden_states = self.embed_tokens(input_ids)
        length = input_ids.shape[1]
        if position_ids is None:
            position_ids = torch.arange(length, device=input_ids.device)[None, :]
        causal = torch.full((length, length), float("-inf"), device=input_ids.device).triu(1)
        position_embeddings = self.rotary_emb(hidden_states, position_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states, position_embeddings, causal[None, None])
        return self.norm(hidden_states)


class LumenForCausalLM(nn.Module):
    def __init__(self, config: LumenConfig):
        super().__init__()
        self.config = config
        self.model = LumenModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids, position_ids=None):
        return self.lm_head(self.model(input_ids, position_ids))
