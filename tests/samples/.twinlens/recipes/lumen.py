"""Lumen as a trace runs it: small, seeded, and with a prompt of more than a hundred tokens."""

import torch
import twinlens

from lumen.configuration_lumen import LumenConfig
from lumen.modeling_lumen import LumenForCausalLM, LumenModel


def prompt(config):
    return {"input_ids": torch.randint(0, config.vocab_size, (1, 128))}


@twinlens.recipe(target="LumenModel", seed=673)
def lumen():
    config = LumenConfig()
    return LumenModel(config).eval(), prompt(config)


@twinlens.recipe(target="LumenForCausalLM", seed=673)
def lumen_for_causal_lm():
    config = LumenConfig(num_hidden_layers=2)
    return LumenForCausalLM(config).eval(), prompt(config)
