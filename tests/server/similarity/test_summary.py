from __future__ import annotations

import pytest
from twinlens.similarity.answers import Answer, Match, RankedMatch
from twinlens.similarity.summary import summarise


def answer(identity: str, score: float, *twins: str) -> Answer:
    model, _, name = identity.partition("::")
    ranked = RankedMatch(Match(model, name, f"/{model}.py", 1, 0.9, 0.9, False), score, twins, ())
    return Answer((), (), (), (ranked,))


def test_the_model_that_covers_most_comes_first_with_its_mean_score():
    found = summarise(
        {
            "NovaMLP": answer("llama::LlamaMLP", 0.9),
            "NovaNorm": answer("llama::LlamaRMSNorm", 0.7),
            "NovaAttention": answer("qwen2::Qwen2Attention", 0.95),
        }
    )
    assert [(covered.model, covered.definitions) for covered in found] == [
        ("llama", ("NovaMLP", "NovaNorm")),
        ("qwen2", ("NovaAttention",)),
    ]
    assert found[0].score == pytest.approx(0.8)


def test_a_model_that_covers_nothing_besides_is_folded_under_the_one_shown():
    (llama,) = summarise(
        {
            "NovaMLP": answer("llama::LlamaMLP", 0.9, "mistral::MistralMLP", "aria::AriaMLP"),
            "NovaNorm": answer("llama::LlamaRMSNorm", 0.9, "mistral::MistralRMSNorm"),
        }
    )
    assert (llama.model, llama.also) == ("llama", ("mistral", "aria"))


def test_a_model_that_covers_more_by_its_twins_is_not_folded():
    found = summarise(
        {
            "NovaMLP": answer("llama::LlamaMLP", 0.9, "mistral::MistralMLP"),
            "NovaAttention": answer("mistral::MistralAttention", 0.9),
        }
    )
    assert [(covered.model, covered.also) for covered in found] == [("mistral", ("llama",))]


def test_a_poor_match_covers_nothing():
    assert summarise({"NovaMLP": answer("llama::LlamaMLP", 0.01), "NovaLoss": Answer((), (), (), ())}) == ()
