"""An editor's view of a checkout: what is typed counts at once, and only what it bears on is decided anew."""

from __future__ import annotations

import shutil

import pytest
from twinlens.skips.lints import Linter
from twinlens.skips.notices import ScanError
from twinlens.skips.states import State
from twinlens.skips.watch import Watch, find_checkout

BIRCH = "tests/models/birch/test_modeling_birch.py"
FERN = "tests/models/fern/test_modeling_fern.py"
COMMON = "tests/test_modeling_common.py"


@pytest.fixture
def copy(checkout, tmp_path):
    return shutil.copytree(checkout, tmp_path / "checkout", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def watch(copy, tmp_path):
    return Watch(copy, tmp_path / "cache")


def _outcomes(linked, name):
    return next(cls.outcomes for cls in linked.scan.classes if cls.name == name)


def _typed(root, path, old, new):
    text = (root / path).read_text(encoding="utf-8")
    assert old in text
    return {path: text.replace(old, new)}


def test_a_typed_flag_counts_at_once_and_no_longer_when_it_is_undone(watch, copy):
    typed = _typed(copy, BIRCH, "has_attentions = False", "has_attentions = True")
    before = watch.update({})
    assert _outcomes(before, "BirchModelTest")["test_attention_outputs"].state is State.DISABLED
    assert _outcomes(watch.update(typed), "BirchModelTest")["test_attention_outputs"].state is State.RUNS
    assert _outcomes(watch.update({}), "BirchModelTest")["test_attention_outputs"].state is State.DISABLED


def test_classes_that_inherit_from_a_typed_class_follow_and_others_stay_as_they_are(watch, copy):
    before = watch.update({})
    after = watch.update(_typed(copy, FERN, "Ferns have no seeds to save", "Ferns have spores"))
    assert _outcomes(after, "FernModelTest")["test_save_load"].reason == "Ferns have spores"
    assert _outcomes(after, "FernShadowModelTest")["test_forward"].reason == "Ferns have spores"
    aster = "tests/models/aster/test_modeling_aster.py"
    assert after.files[aster] is before.files[aster]
    assert (
        after.files["tests/models/fern/test_modeling_fern_frond.py"]
        is not before.files["tests/models/fern/test_modeling_fern_frond.py"]
    )


def test_an_edit_of_a_common_file_reaches_every_class(watch, copy):
    watch.update({})
    typed = _typed(copy, COMMON, "    test_resize_embeddings = True", "    test_resize_embeddings = False")
    after = watch.update(typed)
    assert _outcomes(after, "IvyModelTest")["test_resize_tokens_embeddings"].state is State.DISABLED


def test_the_same_text_again_is_no_news(watch, copy):
    typed = _typed(copy, BIRCH, "has_attentions = False", "has_attentions = True")
    assert watch.update(typed) is watch.update(dict(typed))


def test_a_comment_or_a_body_that_tests_the_same_changes_no_row(watch, copy):
    before = watch.update({})
    after = watch.update(_typed(copy, BIRCH, "class BirchModel(ToyModel):", "class BirchModel(ToyModel):  # tall"))
    assert after is before


def test_lints_of_a_typed_text_agree_with_a_scan_made_anew(watch, copy):
    watch.update({})
    typed = _typed(
        copy, FERN, "    test_tied_weights = False\n", "    test_tied_weights = False\n    test_pruning = 1 > 0\n"
    )
    typed[FERN] = typed[FERN].replace("test_pruning = 1 > 0", "test_pruning = True")
    quick = list(Linter(watch.update(typed)).all_findings())
    (copy / FERN).write_text(typed[FERN], encoding="utf-8")
    assert quick == list(Linter(Watch(copy).update({})).all_findings())


def test_files_that_change_come_or_go_on_disk_are_taken_up(watch, copy):
    watch.update({})
    text = (copy / BIRCH).read_text(encoding="utf-8").replace("has_attentions = False", "has_attentions = True")
    (copy / BIRCH).write_text(text, encoding="utf-8")
    assert watch.changed_on_disk([copy / BIRCH, copy / "README.md"]) is True
    assert _outcomes(watch.update({}), "BirchModelTest")["test_attention_outputs"].state is State.RUNS
    (copy / BIRCH).unlink()
    assert watch.changed_on_disk([copy / BIRCH]) is True
    assert "birch" not in watch.update({}).scan.models
    assert watch.changed_on_disk([copy / "README.md"]) is False


def test_the_checkout_of_a_file_is_found_above_it(copy, tmp_path):
    assert find_checkout(copy / BIRCH) == copy
    assert find_checkout(copy) == copy
    assert find_checkout(tmp_path) is None


def test_a_checkout_whose_tests_vanish_says_so(watch, copy):
    watch.update({})
    shutil.rmtree(copy / "tests" / "models")
    watch.changed_on_disk([copy / BIRCH])
    with pytest.raises(ScanError, match="has no tests/models"):
        watch.update({})
