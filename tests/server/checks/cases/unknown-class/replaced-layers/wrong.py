from torch import nn
from transformers import PreTrainedModel
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class Attention(nn.Module):
    def forward(self, states, **kwargs):
        return states, None


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()

    def forward(self, states, **kwargs):
        return self.self_attn(states)[0]


class FusedLayer(nn.Module):
    def forward(self, states, **kwargs):
        return states


class BasePreTrainedModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": [FusedLayer, Layer]}


class Model(BasePreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        layers = []
        for _ in range(config.num_hidden_layers):
            layers.append(FusedLayer())
        self.layers = nn.ModuleList(layers)

    @capture_outputs(tie_last_hidden_states=False)
    def forward(self, states, **kwargs):
        return isinstance(self.layers[0], Layer)
