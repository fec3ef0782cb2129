"""Configuration of Lumen, a small decoder-only language model."""

from dataclasses import dataclass


@dataclass
class LumenConfig:
    vocab_size: int = 320
    hidden_size: int = 64
    intermediate_size: int = 160
    num_hidden_layers: int = 3
    num_attention_heads: int = 8
    num_key_value_heads: int = 2
    max_position_embeddings: int = 256
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
