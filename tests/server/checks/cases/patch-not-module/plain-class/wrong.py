from torch import nn
from transformers.monkey_patching import register_patch_mapping


class Fused:
    def __init__(self, config): ...


register_patch_mapping({"MapleMLP": Fused})
