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


class Model(PreTrainedModel):
    _can_record_outputs = {"hidden_states": Layer, "attentions": Attention}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([Layer() for _ in range(config.num_hidden_layers)])

    @capture_outputs
    def forward(self, states, output_hidden_states=None, **kwargs):
        all_hidden_states = () if output_hidden_states else None
        for layer in self.layers:
            if output_hidden_states:
                all_hidden_states = all_hidden_states + (states,)
            states = layer(states)
        return dict(last_hidden_state=states, hidden_states=all_hidden_states)
