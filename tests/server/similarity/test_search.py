from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from twinlens.similarity import index as on_disk
from twinlens.similarity.answers import query_file
from twinlens.similarity.build import build_index
from twinlens.similarity.corpus import changed_files
from twinlens.similarity.embedder import open_embedder
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.search import Searcher
from twinlens.source.library import find_library


@pytest.fixture(scope="module")
def searcher(small_library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "index"
    library = find_library((), None, [small_library])
    index = build_index(library, folder, DEFAULT).index
    return Searcher(index, library.roots, open_embedder(index.embedder, folder))


@pytest.fixture(scope="module")
def by_identifiers(small_library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens") / "index"
    library = find_library((), None, [small_library])
    build_index(library, folder, None)
    return on_disk.load(folder), library.roots


def answer(searcher, path, model, name, top_k=5):
    return searcher.answers(query_file(path.read_text(), path, model), [name], top_k)[0]


def test_a_renamed_copy_scores_one_by_both(searcher, small_library, tmp_path):
    path = tmp_path / "modeling_nova.py"
    path.write_text((small_library / "llama/modeling_llama.py").read_text().replace("Llama", "Nova"))
    found = answer(searcher, path, "nova", "NovaMLP").ranked[0]
    assert found.match.identity == "llama::LlamaMLP"
    assert found.match.embedding == pytest.approx(1, abs=1e-5)
    assert found.match.jaccard == 1
    assert found.match.in_both


def test_equal_definitions_of_other_models_are_one_entry(searcher, small_library, tmp_path):
    path = tmp_path / "modeling_nova.py"
    path.write_text((small_library / "llama/modeling_llama.py").read_text().replace("Llama", "Nova"))
    found = answer(searcher, path, "nova", "NovaRMSNorm").ranked[0]
    assert {found.match.identity, *found.twins} == {"llama::LlamaRMSNorm", "mistral::MistralRMSNorm"}


def test_the_querys_own_model_is_left_out(searcher, small_library):
    path = small_library / "llama/modeling_llama.py"
    result = answer(searcher, path, "llama", "LlamaMLP", top_k=20)
    models = {match.model for match in (*result.embedding, *result.jaccard)}
    assert "llama" not in models and "mistral" in models


def test_a_match_opens_at_its_definition(searcher, lumen_file):
    match = answer(searcher, lumen_file, "lumen", "LumenMLP").ranked[0].match
    assert Path(match.path).read_text().split("\n")[match.line - 1].startswith(f"class {match.name}(")


def test_the_intersection_stands_in_both_top_fives(searcher, lumen_file):
    result = answer(searcher, lumen_file, "lumen", "LumenRMSNorm")
    both = {match.identity for match in result.embedding} & {match.identity for match in result.jaccard}
    assert set(result.intersection) == both != set()


def test_top_k_bounds_every_list(searcher, lumen_file):
    result = answer(searcher, lumen_file, "lumen", "LumenMLP", top_k=2)
    assert (len(result.embedding), len(result.jaccard), len(result.ranked)) == (2, 2, 2)


def test_by_identifiers_alone_there_is_no_embedding_score(by_identifiers, lumen_file):
    result = answer(Searcher(*by_identifiers), lumen_file, "lumen", "LumenMLP")
    assert result.embedding == ()
    assert [ranked.match.embedding for ranked in result.ranked] == [None] * len(result.ranked)
    assert result.ranked[0].match.jaccard > 0.5


def test_without_features_the_jaccard_score_ranks(by_identifiers, lumen_file):
    index, roots = by_identifiers
    result = answer(Searcher(replace(index, features=None), roots), lumen_file, "lumen", "LumenMLP")
    assert [ranked.score for ranked in result.ranked] == [ranked.match.jaccard for ranked in result.ranked]
    assert result.ranked[0].score > 0.5


def test_both_ways_of_counting_give_equal_jaccard_scores(by_identifiers, lumen_file):
    index, roots = by_identifiers
    counted = [
        answer(Searcher(found, roots), lumen_file, "lumen", "LumenMLP", top_k=20).jaccard
        for found in (index, replace(index, features=None))
    ]
    assert counted[0] == counted[1] != ()


def test_a_class_says_what_its_ancestors_are(searcher, small_library, tmp_path):
    path = tmp_path / "modeling_nova.py"
    path.write_text((small_library / "mistral/modeling_mistral.py").read_text().replace("Mistral", "Nova"))
    found = answer(searcher, path, "nova", "NovaAttention").ranked[0]
    assert found.match.identity == "mistral::MistralAttention"
    assert found.ancestors == ("llama::LlamaAttention",)


def test_a_library_class_knows_its_parents(searcher, small_library):
    result = answer(searcher, small_library / "mistral/modeling_mistral.py", "mistral", "MistralAttention")
    assert [match.identity for match in result.parents] == ["llama::LlamaAttention"]
    assert answer(searcher, small_library / "llama/modeling_llama.py", "llama", "LlamaAttention").parents == ()


def test_the_files_other_classes_decide_between_like_candidates(searcher, small_library, tmp_path):
    """A class that BERT and RoBERTa have alike is RoBERTa's in a file that otherwise follows RoBERTa."""
    path = tmp_path / "modeling_nova.py"
    text = (small_library / "roberta/modeling_roberta.py").read_text().replace("Roberta", "Nova")
    path.write_text(text)
    scores = {
        ranked.match.model: ranked.score for ranked in answer(searcher, path, "nova", "NovaEmbeddings", top_k=20).ranked
    }
    assert max(scores, key=scores.__getitem__) == "roberta"


def test_models_newer_than_a_date_are_left_out(searcher, lumen_file):
    query = query_file(lumen_file.read_text(), lumen_file, "lumen")
    (recent,) = searcher.answers(query, ["LumenMLP"], 30)
    (early,) = searcher.answers(query, ["LumenMLP"], 30, before=date(2019, 1, 1))
    models = {match.model for match in early.jaccard}
    assert "llama" in {match.model for match in recent.jaccard}
    assert models == {match.model for match in early.embedding} == {ranked.match.model for ranked in early.ranked}
    # Mistral's file claims no copyright: a model of unknown date stays.
    assert models == {"bert", "mistral", "roberta"}


def test_a_name_that_the_file_does_not_define_is_a_key_error(searcher, lumen_file):
    with pytest.raises(KeyError):
        answer(searcher, lumen_file, "lumen", "Nothing")


@pytest.fixture
def changing(small_library, tmp_path):
    """A library that the test may change, and a searcher over it."""
    root = tmp_path / "library"
    for model in ("llama", "mistral", "gemma2"):
        shutil.copytree(small_library / model, root / model)
    library = find_library((), None, [root])
    folder = tmp_path / "index"
    index = build_index(library, folder, DEFAULT).index
    return library, Searcher(index, library.roots, open_embedder(index.embedder, folder))


def take_in(library, searcher, *paths):
    searcher.update(list(changed_files(library, searcher.index.digests, paths)))


def test_a_saved_file_answers_as_an_index_that_is_built_anew(changing, lumen_file, tmp_path):
    library, live = changing
    path = library.roots[0] / "llama/modeling_llama.py"
    path.write_text(
        path.read_text().replace("LlamaMLP", "LlamaFeedForward").replace("self.up_proj(x)", "self.up_proj(x) + x")
    )
    take_in(library, live, path)
    rebuilt = Searcher(build_index(library, tmp_path / "anew", DEFAULT).index, library.roots)
    file = query_file(lumen_file.read_text(), lumen_file, "lumen")
    names = [definition.name for definition in file.definitions]
    for ours, theirs in zip(live.answers(file, names, 500), rebuilt.answers(file, names, 500), strict=True):
        assert {(r.match.identity, *sorted(r.twins)): r.score for r in ours.ranked} == pytest.approx(
            {(r.match.identity, *sorted(r.twins)): r.score for r in theirs.ranked}
        )
        assert {m.identity: (m.jaccard, m.line) for m in ours.jaccard} == {
            m.identity: (m.jaccard, m.line) for m in theirs.jaccard
        }
    found = answer(live, lumen_file, "lumen", "LumenMLP", top_k=20)
    identities = {match.identity for match in (*found.embedding, *found.jaccard)}
    assert "llama::LlamaFeedForward" in identities
    assert "llama::LlamaMLP" not in identities


def test_a_deleted_file_is_named_no_more_and_one_that_comes_back_is(changing, lumen_file):
    library, live = changing
    path = library.roots[0] / "llama/modeling_llama.py"
    text = path.read_text()
    path.unlink()
    take_in(library, live, path)
    assert "llama" not in {ranked.match.model for ranked in answer(live, lumen_file, "lumen", "LumenMLP", 20).ranked}
    path.write_text(text)
    take_in(library, live, path)
    assert "llama" in {ranked.match.model for ranked in answer(live, lumen_file, "lumen", "LumenMLP", 20).ranked}


def test_a_saved_file_that_does_not_parse_keeps_its_definitions(changing, lumen_file):
    library, live = changing
    path = library.roots[0] / "llama/modeling_llama.py"
    path.write_text(path.read_text() + "\nclass Broken(:\n")
    before = live.index
    take_in(library, live, path)
    assert live.index is before


def test_a_file_of_no_model_and_one_that_is_as_it_was_change_nothing(changing, tmp_path):
    library, live = changing
    stranger = library.roots[0] / "llama" / "convert_llama.py"
    stranger.write_text("class Convert: ...\n")
    elsewhere = tmp_path / "modeling_elsewhere.py"
    elsewhere.write_text("class Elsewhere: ...\n")
    before = live.index
    take_in(library, live, stranger, elsewhere, library.roots[0] / "llama/modeling_llama.py")
    assert live.index is before
