from torch import nn
from transformers.monkey_patching import register_patch_mapping


class Fused(nn.Module):
    def __init__(self, config, layer_idx=None):
        super().__init__()

    def forward(self, hidden_states, mask): ...


register_patch_mapping({"MapleAttention": Fused})
