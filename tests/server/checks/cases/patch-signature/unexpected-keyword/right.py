from torch import nn
from transformers.monkey_patching import register_patch_mapping


class Fused(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()


register_patch_mapping({"MapleAttention": Fused})
