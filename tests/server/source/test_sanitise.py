from __future__ import annotations

import pytest
from twinlens.source.definitions import read_definitions, read_source
from twinlens.source.sanitise import identifier_tokens, model_prefixes, sanitise


@pytest.mark.parametrize(
    ("model", "first"),
    [
        ("llama", "Llama"),
        ("qwen2_5_vl", "Qwen2_5_VL"),
        ("altclip", "AltRoberta"),
        ("audio_spectrogram_transformer", "AST"),
        ("gpt2", "GPT2"),
        ("t5", "T5"),
        ("mobilebert", "MobileBert"),
        ("blip_2", "Blip2"),
    ],
)
def test_the_prefix_comes_from_the_class_names(installed_models, model, first):
    definitions = read_definitions(read_source(installed_models / model / f"modeling_{model}.py"))
    prefixes = model_prefixes([d.name for d in definitions if d.kind == "class"], [model])
    assert prefixes[0] == first


def test_a_second_family_of_class_names_has_its_own_prefix(installed_models):
    definitions = read_definitions(read_source(installed_models / "altclip/modeling_altclip.py"))
    assert model_prefixes([d.name for d in definitions if d.kind == "class"], ["altclip"]) == ("AltRoberta", "AltCLIP")


def test_without_a_hint_the_prefix_is_what_most_names_share():
    assert model_prefixes(["MyNetAttention", "MyNetMLP", "MyNetLayer", "Helper"], ["scratch"]) == ("MyNet",)


def test_a_single_class_loses_its_first_word():
    assert model_prefixes(["FancyAttention"], ["scratch"]) == ("Fancy",)


def test_names_that_share_nothing_have_no_prefix():
    assert model_prefixes(["Attention", "Block"], ["scratch"]) == ()


def test_a_prefix_is_replaced_at_the_start_of_a_word_only():
    code = "class SamMLP(SamBase):\n    sample = sam_sizes + SAM_SIZES + self.sam + Sample + Sam2Config"
    assert sanitise(code, ("Sam",), ["sam"]) == (
        "class ModelMLP(ModelBase):\n    sample = Model_sizes + Model_SIZES + self.Model + Sample + Model2Config"
    )


def test_two_models_that_differ_in_their_name_alone_read_the_same(installed_models):
    codes = []
    for model, name in (("llama", "LlamaRMSNorm"), ("mistral", "MistralRMSNorm")):
        definitions = read_definitions(read_source(installed_models / model / f"modeling_{model}.py"))
        prefixes = model_prefixes([d.name for d in definitions if d.kind == "class"], [model])
        codes.append(sanitise(next(d.code for d in definitions if d.name == name), prefixes, [model]))
    assert codes[0] == codes[1]
    assert codes[0].startswith("class ModelRMSNorm(nn.Module):\n")


def test_tokens_are_the_set_of_identifiers():
    assert identifier_tokens("def f(x):\n    return x + 1") == {"def", "f", "x", "return"}
