from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from twinlens.similarity.modular import NotInheritableError, Parent, inherit
from twinlens.source.definitions import read_definitions

NOVA = Path("/models/nova/modeling_nova.py")


@pytest.fixture(scope="module")
def parent(installed_models):
    def parent(name: str, model: str = "llama") -> Parent:
        relative = f"{model}/modeling_{model}.py"
        return Parent(name, model, relative, (installed_models / relative).read_text(encoding="utf-8"))

    return parent


@pytest.fixture(scope="module")
def nova(installed_models) -> str:
    """A port that is Llama under another name."""
    llama = (installed_models / "llama/modeling_llama.py").read_text(encoding="utf-8")
    return llama.replace("Llama", "Nova").replace("llama", "nova")


def classes_of(text: str) -> str:
    """The file from its first import on."""
    return text[text.index("\nfrom ") + 1 :] if not text.startswith("from ") else text


def test_a_class_that_is_its_parent_under_another_name_passes(nova, parent):
    written = inherit(nova, NOVA, "NovaMLP", parent("LlamaMLP"), None)
    assert written.path == Path("/models/nova/modular_nova.py")
    assert classes_of(written.text) == (
        "from ..llama.modeling_llama import LlamaMLP\n\n\nclass NovaMLP(LlamaMLP):\n    pass\n"
    )


def test_the_licence_of_the_modeling_file_comes_along(nova, parent):
    written = inherit(nova, NOVA, "NovaMLP", parent("LlamaMLP"), None)
    assert written.text.startswith("# Copyright 2022 EleutherAI")


def test_an_added_attribute_stands_after_super(nova, parent):
    added = nova.replace(
        "        self.act_fn = ACT2FN[config.hidden_act]\n",
        "        self.act_fn = ACT2FN[config.hidden_act]\n        self.dropout = nn.Dropout(config.dropout)  # new\n",
    )
    assert classes_of(inherit(added, NOVA, "NovaMLP", parent("LlamaMLP"), None).text) == (
        "from torch import nn\n\n"
        "from ..llama.modeling_llama import LlamaMLP\n\n\n"
        "class NovaMLP(LlamaMLP):\n"
        "    def __init__(self, config):\n"
        "        super().__init__(config)\n"
        "        self.dropout = nn.Dropout(config.dropout)  # new\n"
    )


def test_a_replaced_and_a_missing_attribute(nova, parent):
    changed = nova.replace(
        "self.down_proj = nn.Linear(self.intermediate_size, self.hidden_size, bias=config.mlp_bias)",
        "self.down_proj = nn.Linear(self.intermediate_size, self.hidden_size, bias=True)",
    ).replace("        self.config = config\n        self.hidden_size", "        self.hidden_size", 1)
    assert (
        "        super().__init__(config)\n"
        "        del self.config\n"
        "        self.down_proj = nn.Linear(self.intermediate_size, self.hidden_size, bias=True)\n"
    ) in inherit(changed, NOVA, "NovaMLP", parent("LlamaMLP"), None).text


def test_only_the_method_that_differs_is_written(nova, parent):
    changed = nova.replace("return self.weight * hidden_states.to(input_dtype)", "return (1 + self.weight) * x")
    text = inherit(changed, NOVA, "NovaRMSNorm", parent("LlamaRMSNorm"), None).text
    (definition,) = read_definitions(text)
    assert definition.methods == ("forward",)
    assert "(1 + self.weight) * x" in text


def test_a_configuration_of_another_name_is_said_in_the_signature(nova, parent):
    other = nova.replace(
        "class NovaDecoderLayer(GradientCheckpointingLayer):\n    def __init__(self, config: NovaConfig",
        "class NovaDecoderLayer(GradientCheckpointingLayer):\n    def __init__(self, config: NovaTextConfig",
    ).replace("import NovaConfig", "import NovaConfig, NovaTextConfig")
    text = inherit(other, NOVA, "NovaDecoderLayer", parent("LlamaDecoderLayer"), None).text
    assert text.endswith(
        "class NovaDecoderLayer(LlamaDecoderLayer):\n"
        "    def __init__(self, config: NovaTextConfig, layer_idx: int):\n"
        "        super().__init__(config, layer_idx)\n"
    )
    assert "from .configuration_nova import NovaTextConfig\n" in text


def test_an_override_that_calls_its_base_says_which(nova, parent):
    different = nova.replace(
        "        self.gate_proj = nn.Linear(self.hidden_size, self.intermediate_size, bias=config.mlp_bias)\n"
        "        self.up_proj = nn.Linear(self.hidden_size, self.intermediate_size, bias=config.mlp_bias)\n"
        "        self.down_proj = nn.Linear(self.intermediate_size, self.hidden_size, bias=config.mlp_bias)\n"
        "        self.act_fn = ACT2FN[config.hidden_act]\n",
        "        for name in config.names:\n            self.add_module(name, nn.Identity())\n",
    )
    text = inherit(different, NOVA, "NovaMLP", parent("LlamaMLP"), None).text
    assert "    def __init__(self, config):\n        nn.Module.__init__(self)\n" in text


def test_a_method_that_is_gone_is_named(nova, parent):
    gone = nova[: nova.index("    def extra_repr")] + nova[nova.index("class NovaRotaryEmbedding") :]
    gone = gone.replace("    def compute_default_rope_parameters(", "    def other(", 1)
    text = inherit(gone, NOVA, "NovaRotaryEmbedding", parent("LlamaRotaryEmbedding"), None).text
    assert 'raise AttributeError("Not needed for NovaRotaryEmbedding")' in text


def test_a_first_deletion_stands_under_a_blank_line_where_the_converter_looks_for_it(nova, parent):
    start = nova.index("    def forward(self, x):\n        down_proj")
    gone = nova[:start] + nova[nova.index("def repeat_kv") :]
    assert inherit(gone, NOVA, "NovaMLP", parent("LlamaMLP"), None).text.endswith(
        "class NovaMLP(LlamaMLP):\n\n"
        '    def forward(self, x):\n        raise AttributeError("Not needed for NovaMLP")\n'
    )


def test_a_docstring_of_its_own_is_kept(nova, parent):
    documented = nova.replace("class NovaMLP(nn.Module):\n", 'class NovaMLP(nn.Module):\n    """Gated."""\n\n')
    text = inherit(documented, NOVA, "NovaMLP", parent("LlamaMLP"), None).text
    assert text.endswith('class NovaMLP(LlamaMLP):\n    """Gated."""\n')


def test_what_an_override_needs_is_imported_or_written_beside_it(lumen_file, parent):
    text = inherit(lumen_file.read_text(), lumen_file, "LumenAttention", parent("LlamaAttention"), None).text
    assert text.startswith(
        "import math\n\nimport torch\nfrom torch import nn\n\n"
        "from ..llama.modeling_llama import LlamaAttention\nfrom .configuration_lumen import LumenConfig\n"
    )
    assert [d.name for d in read_definitions(text)] == ["rotate_half", "apply_rotary_pos_emb", "LumenAttention"]


def test_a_helper_that_the_parents_file_has_is_imported_from_there(nova, parent):
    changed = nova.replace("self.is_causal = True", "self.is_causal = False").replace(
        "        query_states = self.q_proj(", "        query_states = 2 * self.q_proj("
    )
    text = inherit(changed, NOVA, "NovaAttention", parent("LlamaAttention"), None).text
    assert "apply_rotary_pos_emb" in text[: text.index("class ")]
    assert "def apply_rotary_pos_emb" not in text


def test_a_second_class_extends_the_file_in_the_order_of_the_modeling_file(nova, parent):
    first = inherit(nova, NOVA, "NovaAttention", parent("LlamaAttention"), None).text
    second = inherit(nova, NOVA, "NovaMLP", parent("LlamaMLP"), first).text
    third = inherit(nova, NOVA, "NovaForCausalLM", parent("LlamaForCausalLM"), second).text
    assert [d.name for d in read_definitions(third)] == ["NovaMLP", "NovaAttention", "NovaForCausalLM"]
    assert "from ..llama.modeling_llama import LlamaAttention, LlamaForCausalLM, LlamaMLP\n" in third
    assert third.endswith('\n\n\n__all__ = ["NovaForCausalLM"]\n')


def test_what_stands_in_the_file_stays_as_it_is(nova, parent):
    present = (
        "# mine\n\nfrom torch import nn\n\nfrom ..mistral.modeling_mistral import MistralRMSNorm  # why\n\n\n"
        "class NovaRMSNorm( MistralRMSNorm ):\n    x = {1:2}   # odd spacing\n"
    )
    text = inherit(nova, NOVA, "NovaMLP", parent("LlamaMLP"), present).text
    assert text == (
        "# mine\n\nfrom torch import nn\n\nfrom ..llama.modeling_llama import LlamaMLP\n"
        "from ..mistral.modeling_mistral import MistralRMSNorm  # why\n\n\n"
        "class NovaRMSNorm( MistralRMSNorm ):\n    x = {1:2}   # odd spacing\n\n\n"
        "class NovaMLP(LlamaMLP):\n    pass\n"
    )


def test_a_class_that_is_there_already_is_replaced(nova, parent):
    once = inherit(nova, NOVA, "NovaMLP", parent("LlamaMLP"), None).text
    assert inherit(nova, NOVA, "NovaMLP", parent("LlamaMLP"), once).text == once


def test_an_absolute_import_of_transformers_becomes_relative(nova, parent):
    absolute = nova.replace("from ...activations import", "from transformers.activations import").replace(
        "        self.act_fn = ACT2FN[config.hidden_act]\n",
        "        self.act_fn = ACT2FN[config.hidden_act]\n        self.other = ACT2FN[config.other]\n",
    )
    text = inherit(absolute, NOVA, "NovaMLP", parent("LlamaMLP"), None).text
    assert "from ...activations import ACT2FN\n" in text


def test_a_decorator_that_the_class_takes_over_is_told(lumen_file, parent):
    written = inherit(lumen_file.read_text(), lumen_file, "LumenRMSNorm", parent("LlamaRMSNorm"), None)
    assert written.notes == ("the class takes over a decorator of LlamaRMSNorm.",)


@pytest.mark.parametrize(
    ("modeling", "name", "modular", "sentence"),
    [
        ("class NovaMLP(:\n", "NovaMLP", None, "does not parse at line 1"),
        ("x = 1\n", "NovaMLP", None, "NovaMLP is no class at the top level of nova"),
        ("class NovaMLP(nn.Module):\n    pass\n", "NovaMLP", "class (\n", r"modular_nova.py does not parse at line"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(modeling, name, modular, sentence, parent):
    with pytest.raises(NotInheritableError, match=sentence):
        inherit(modeling, NOVA, name, parent("LlamaMLP"), modular)


CHECKOUT = os.environ.get("TWINLENS_TRANSFORMERS")


@pytest.mark.skipif(CHECKOUT is None, reason="TWINLENS_TRANSFORMERS names no transformers checkout")
@pytest.mark.parametrize(
    ("model", "name", "parent_model", "parent_name"),
    [
        ("gemma", "GemmaMLP", "llama", "LlamaMLP"),
        ("mistral", "MistralMLP", "llama", "LlamaMLP"),
        ("mistral", "MistralDecoderLayer", "llama", "LlamaDecoderLayer"),
        ("mistral", "MistralAttention", "llama", "LlamaAttention"),
        ("qwen2", "Qwen2Attention", "llama", "LlamaAttention"),
        ("helium", "HeliumMLP", "granite", "GraniteMLP"),
        ("starcoder2", "Starcoder2Attention", "mistral", "MistralAttention"),
        ("roberta", "RobertaSelfOutput", "bert", "BertSelfOutput"),
        ("phimoe", "PhimoeAttention", "llama", "LlamaAttention"),
        ("glm", "GlmMLP", "phi3", "Phi3MLP"),
    ],
)
def test_transformers_own_converter_gives_the_class_back(
    installed_models, parent, tmp_path, model, name, parent_model, parent_name
):
    modeling_file = installed_models / model / f"modeling_{model}.py"
    modeling = modeling_file.read_text(encoding="utf-8")
    written = inherit(modeling, modeling_file, name, parent(parent_name, parent_model), None)
    modular = tmp_path / "src/transformers/models" / model / f"modular_{model}.py"
    modular.parent.mkdir(parents=True)
    modular.write_text(written.text, encoding="utf-8")
    converted = converter().convert_modular_file(str(modular))["modeling"]
    text = converted[0] if isinstance(converted, tuple) else converted
    assert _tree(text, name) == _tree(modeling, name)


def converter():
    path = Path(str(CHECKOUT)) / "utils/modular_model_converter.py"
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("modular_model_converter", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tree(text: str, name: str) -> str:
    code = next(d.code for d in read_definitions(text) if d.name == name)
    return ast.unparse(ast.parse(code))
