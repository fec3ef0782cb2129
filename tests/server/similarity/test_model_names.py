from __future__ import annotations

import pytest
from twinlens.similarity.model_names import name_likeness


@pytest.mark.parametrize(
    ("first", "second", "likeness"),
    [
        ("gemma3", "gemma2", 1.0),
        ("qwen3_moe", "qwen2", 0.5),
        ("my_Llama", "llama", 0.5),
        ("t5gemma", "gemma", 0.5),
        ("mistral", "ministral", 0.0),
        ("123", "llama", 0.0),
    ],
)
def test_models_are_as_alike_as_the_words_of_their_names(first, second, likeness):
    assert name_likeness(first, second) == name_likeness(second, first) == likeness
