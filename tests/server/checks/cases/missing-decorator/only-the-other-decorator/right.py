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


class BasePreTrainedModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": Layer}


class Model(BasePreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.layer = Layer()

    @merge_with_config_defaults
    @capture_outputs
    def forward(self, states, use_cache=None, **kwargs):
        return self.layer(states)


class ModelWithHead(BasePreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = Model(config)

    def forward(self, states, **kwargs):
        return self.model(states, **kwargs)
