from torch import nn
from transformers.monkey_patching import register_patch_mapping


class Fused(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, *args, **kwargs): ...


PATCHES = {"^MapleOutput$": Fused}
register_patch_mapping(mapping=PATCHES)
