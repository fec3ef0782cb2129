from __future__ import annotations

import json

import pytest
from twinlens.skips.reasons import group_reasons
from twinlens.skips.report import all_answers, answer_for, as_json, to_text


@pytest.fixture
def entry(linked):
    return lambda test: as_json(answer_for(linked.scan, linked.scan.tests[test]))


def test_a_model_skips_a_test_that_none_of_its_classes_runs(entry):
    found = entry("test_signature")
    assert found["origin"] == "common"
    assert found["models_skipped"] == ["aster", "birch"]
    assert found["models_ran"] == ["cedar", "dahlia", "elm", "fern", "ivy"]
    assert found["skipped_proportion"] == round(2 / 7, 4)
    assert found["reasons_skipped"] == ["aster: Aster's forward takes anything", "birch: the method does nothing"]


def test_a_model_whose_classes_differ_ran_and_is_mixed(entry):
    found = entry("test_save_load")
    assert found["models_mixed"] == ["fern"]
    assert "fern" in found["models_ran"] and "fern" not in found["models_skipped"]


def test_a_model_that_inherits_no_class_of_the_mixin_is_not_applicable(entry):
    assert entry("test_forward")["models_not_applicable"] == ["hazel"]
    assert entry("test_greedy_generate")["models_not_applicable"] == ["elm", "fern", "hazel"]
    assert entry("test_greedy_generate")["skipped_proportion"] == 0.4


def test_states_name_every_class_that_inherits_the_test(entry):
    states = entry("test_tied_weights")["states"]
    assert states["tests/models/birch/test_modeling_birch.py::BirchModelTest"] == {
        "state": "shadowed",
        "reason": "test_tied_weights = False",
        "path": "tests/models/birch/test_modeling_birch.py",
        "line": 20,
    }
    assert len(states) == 14


def test_states_tell_conditions_and_variants(entry):
    cedar = entry("test_determinism")["states"]["tests/models/cedar/test_modeling_cedar.py::CedarModelTest"]
    assert cedar["condition"] == "os.environ.get('WINDY')"
    dahlia = entry("test_assisted_decoding")["states"]["tests/models/dahlia/test_modeling_dahlia.py::DahliaModelTest"]
    assert {name: variant["state"] for name, variant in dahlia["variants"].items()} == {
        "test_assisted_decoding_0_random": "runs",
        "test_assisted_decoding_1_same": "skipped",
    }


def test_the_written_text_holds_each_test_s_entry(linked):
    written = json.loads(to_text(all_answers(linked.scan)))
    assert written == {answer.test.name: as_json(answer) for answer in all_answers(linked.scan)}


def test_reasons_that_differ_in_names_and_wording_are_one_group():
    groups = group_reasons(
        [
            ("clip", "CLIP does not use inputs_embeds"),
            ("vit", "ViT doesn't use inputs_embeds"),
            ("beit", "BEiT does not use inputs_embeds"),
            ("fsmt", "can't be implemented due to dual vocab"),
            ("bit", ""),
        ]
    )
    assert [(group.reason, group.models) for group in groups] == [
        ("CLIP does not use inputs_embeds", ("clip", "vit", "beit")),
        ("", ("bit",)),
        ("can't be implemented due to dual vocab", ("fsmt",)),
    ]
