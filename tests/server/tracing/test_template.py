"""A new recipe is filled in with what the class asks for."""

from __future__ import annotations

import ast

import pytest
from twinlens.tracing.template import recipe_name, recipe_template

SOURCE = """
class LumenRMSNorm(nn.Module):
    def __init__(self, hidden_size, *, device, eps=1e-6):
        pass

    def forward(self, hidden_states, gate, scale=None):
        pass


class LumenModel(nn.Module):
    def forward(self, input_ids=None, attention_mask=None):
        pass
"""


def test_the_template_names_the_class_its_constructors_and_its_forwards_arguments(tmp_path):
    (tmp_path / "lumen").mkdir()
    (tmp_path / "lumen" / "__init__.py").write_text("")
    text = recipe_template(SOURCE, "LumenRMSNorm", tmp_path / "lumen" / "modeling_lumen.py", tmp_path)
    ast.parse(text)
    assert "from lumen.modeling_lumen import LumenRMSNorm" in text
    assert '@twinlens.recipe(target="LumenRMSNorm", seed=673)' in text
    assert "def lumen_rms_norm():" in text
    assert "LumenRMSNorm(hidden_size=..., device=...).eval()" in text
    assert '"hidden_states": torch.randn(1, 128, 64),' in text
    assert '"gate": ...,' in text
    assert "scale" not in text
    assert text.startswith(
        '"""A recipe for LumenRMSNorm: the model, and the inputs of one forward. Fill in what is `...`."""\n'
    )


def test_a_forward_without_required_arguments_gets_its_first_one(tmp_path):
    text = recipe_template(SOURCE, "LumenModel", tmp_path / "modeling_lumen.py", tmp_path)
    assert '"input_ids": torch.randint(0, 100, (1, 128)),' in text
    assert "LumenModel().eval()" in text
    assert text.startswith('"""A recipe for LumenModel: the model, and the inputs of one forward."""\n')


@pytest.mark.parametrize(("source", "sentence"), [("class (", "line 1"), ("x = 1", "there is no class Net")])
def test_a_source_without_the_class_gets_a_sentence(source, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        recipe_template(source, "Net", tmp_path / "net.py", tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"), [("LlamaRMSNorm", "llama_rms_norm"), ("MLP", "mlp"), ("ViTModel", "vi_t_model"), ("T5", "t5")]
)
def test_recipes_are_named_after_their_class(name, expected):
    assert recipe_name(name) == expected
