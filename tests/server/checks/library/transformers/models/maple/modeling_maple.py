from dataclasses import dataclass

from torch import nn


@dataclass
class MapleOutput:
    last_hidden_state: object = None


class MapleMLP(nn.Module):
    def __init__(self, config):
        super().__init__()

    def forward(self, hidden_states):
        return hidden_states


class MapleAttention(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()

    def forward(self, hidden_states, mask=None):
        return hidden_states, None


class MapleAttentionPool(nn.Module):
    def __init__(self, config):
        super().__init__()


class MapleBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attn = MapleAttention(config, layer_idx=0)
        self.mlp = MapleMLP(config)

    def forward(self, hidden_states, mask=None):
        return self.mlp(self.attn(hidden_states, mask=mask)[0])


class MapleModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.blocks = nn.ModuleList([MapleBlock(config) for _ in range(2)])
        self.pool = MapleAttentionPool(config)

    def forward(self, hidden_states, mask=None):
        for _, block in enumerate(self.blocks):
            hidden_states = block(hidden_states, mask=mask)
        return self.pool(hidden_states)
