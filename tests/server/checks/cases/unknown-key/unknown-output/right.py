from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class Attention(nn.Module):
    def forward(self, states, **kwargs):
        return states, None


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()

    def forward(self, states, **kwargs):
        return self.self_attn(states)[0]


class Model(PreTrainedModel):
    _can_record_outputs = {"hidden_states": Layer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = Layer()

    @capture_outputs
    def forward(self, states, **kwargs):
        return self.pooled(self.layer(states))
