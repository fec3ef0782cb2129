"""What is read from the source of real models: their modules, and what a recorder records of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlens.checks.assembly import Assembly
from twinlens.checks.engine import check_text
from twinlens.checks.recorded import recorded_at
from twinlens.checks.subject import Subject


def subject_of(world, relative):
    path = world.models[0] / relative
    return Subject(world.module_of(path, path.read_text(encoding="utf-8")), Assembly(world))


def places(world, relative, model):
    subject = subject_of(world, relative)
    return [(place.path, place.cls.name) for place in subject.assembly.places(subject.module.classes[model])]


def test_the_modules_of_llama(installed):
    assert places(installed, "llama/modeling_llama.py", "LlamaModel") == [
        ("", "LlamaModel"),
        ("layers.{i}", "LlamaDecoderLayer"),
        ("layers.{i}.self_attn", "LlamaAttention"),
        ("layers.{i}.mlp", "LlamaMLP"),
        ("layers.{i}.input_layernorm", "LlamaRMSNorm"),
        ("layers.{i}.post_attention_layernorm", "LlamaRMSNorm"),
        ("norm", "LlamaRMSNorm"),
        ("rotary_emb", "LlamaRotaryEmbedding"),
    ]


def test_a_table_of_layer_classes_gives_each_of_them(installed):
    found = places(installed, "jamba/modeling_jamba.py", "JambaModel")
    assert ("layers.{i}", "JambaAttentionDecoderLayer") in found
    assert ("layers.{i}", "JambaMambaDecoderLayer") in found


def test_a_model_within_a_model_is_left_to_itself(installed):
    assert [path for path, _ in places(installed, "clip/modeling_clip.py", "CLIPModel")] == [""]


def recorded_in(world, relative, text):
    """What is recorded by the entry that `text` stands in."""
    subject = subject_of(world, relative)
    before, _, _ = subject.module.text.partition(text)
    return recorded_at(subject, before.count("\n") + 1, len(before.rpartition("\n")[2].encode()) + 1)


def test_an_entry_tells_the_modules_that_it_hooks(installed):
    found = recorded_in(installed, "llama/modeling_llama.py", "LlamaAttention,\n    }")
    assert found.flag == "output_attentions"
    assert found.entry.index == 1
    assert [(model.model, model.paths) for model in found.models] == [("LlamaModel", ("layers.{i}.self_attn",))]


def test_a_layer_name_keeps_some_of_them(installed):
    found = recorded_in(
        installed, "bart/modeling_bart.py", 'OutputRecorder(BartAttention, index=1, layer_name="encoder_attn")'
    )
    assert found.flag == "output_attentions"
    assert [(model.model, model.paths) for model in found.models] == [("BartDecoder", ("layers.{i}.encoder_attn",))]


def test_elsewhere_nothing_is_recorded(installed):
    assert recorded_at(subject_of(installed, "llama/modeling_llama.py"), 1, 0) is None


@pytest.mark.parametrize(
    "model", ["llama", "bert", "t5", "bart", "mixtral", "gpt2", "vit", "whisper", "jamba", "blip_2"]
)
def test_sound_models_have_no_finding_but_caches_that_are_not_there(installed, model):
    for path in sorted((installed.models[0] / model).glob("m*_*.py")):
        found = check_text(path, path.read_text(encoding="utf-8"), Assembly(installed))
        assert {finding.code for finding in found} <= {"no-cache"}, found


def test_attention_outputs_that_are_recorded_as_weights_are_found(installed):
    path = installed.models[0] / "qwen2_vl/modeling_qwen2_vl.py"
    found = check_text(path, path.read_text(encoding="utf-8"), Assembly(installed))
    assert any(
        finding.code == "index-out-of-range"
        and "VisionAttention returns, but its forward returns one tensor" in finding.message
        for finding in found
    )


SAMPLE = """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class Layer(nn.Module): ...


def layers_of(config):
    return nn.ModuleList([Layer() for _ in range(config.depth)])


class Model(PreTrainedModel):
    _can_record_outputs = {"hidden_states": Layer}
    layer_class = Layer

    def __init__(self, config):
        super().__init__(config)
        ASSIGNMENTS

    @capture_outputs
    def forward(self, states, **kwargs): ...
"""


@pytest.mark.parametrize(
    ("assignments", "paths"),
    [
        ("self.a = Layer()", ["a"]),
        ("self.a = Layer() if config.x else nn.Identity()", ["a"]),
        ("self.a = nn.ModuleList([Layer(), Layer()])", ["a.0", "a.1"]),
        ("self.a = nn.Sequential(nn.ReLU(), Layer())", ["a.1"]),
        ("self.a = nn.ModuleDict({'x': Layer()})", ["a.x"]),
        ("self.a = nn.ModuleList(); self.a.append(Layer())", ["a.{i}"]),
        ("layers = [Layer() for _ in range(3)]; self.a = nn.ModuleList(layers)", ["a.{i}"]),
        ("kind = Layer; self.a = kind()", ["a"]),
        ("self.a = self.layer_class()", ["a"]),
        ("self.a = layers_of(config)", ["a.{i}"]),
        ("self.add_module('a', Layer())", ["a"]),
        ("self.add_module(f'a{config.x}', Layer())", ["a{i}"]),
    ],
)
def test_the_ways_to_build_a_layer(installed, tmp_path, assignments, paths):
    path = tmp_path / "modeling_sample.py"
    subject = Subject(installed.module_of(path, SAMPLE.replace("ASSIGNMENTS", assignments)), Assembly(installed))
    found = subject.assembly.places(subject.module.classes["Model"])
    assert [place.path for place in found if place.cls.name == "Layer"] == paths
    assert check_text(path, subject.module.text, Assembly(installed)) == []


def test_names_are_followed_through_files(installed, tmp_path):
    package: Path = tmp_path / "port"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text("from torch import nn\n\n\nclass Layer(nn.Module): ...\n\n\nBlock = Layer\n")
    text = SAMPLE.replace("class Layer(nn.Module): ...", "from .layers import Block as Layer")
    path = package / "modeling_sample.py"
    subject = Subject(installed.module_of(path, text.replace("ASSIGNMENTS", "self.a = Layer()")), Assembly(installed))
    meaning = installed.meaning(subject.module, "Layer")
    assert (meaning.name, meaning.module.path) == ("Layer", package / "layers.py")
    assert check_text(path, subject.module.text, Assembly(installed)) == []
