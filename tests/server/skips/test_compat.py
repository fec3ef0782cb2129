"""Upstream's counting, with the faults that its results have."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from twinlens.skips.compat import scan_as_upstream


@pytest.fixture(scope="module")
def compat(checkout):
    return scan_as_upstream(checkout)


def test_every_model_counts_whether_it_inherits_or_not(compat):
    assert compat.models == ("aster", "birch", "cedar", "dahlia", "elm", "fern", "hazel", "ivy")
    assert compat.file_count == 9


def test_names_of_ordinary_test_classes_are_taken_for_common_tests(compat):
    assert compat.origins["test_generation_is_long_enough"] == "GenerationMixin"
    assert compat.origins["test_forward"] == "common"


def test_flags_and_skips_of_many_lines_are_not_seen(compat):
    found = compat.entry("test_resize_tokens_embeddings")
    assert found["models_skipped"] == []
    assert found["skipped_proportion"] == 0.0


def test_a_reason_ends_at_its_first_apostrophe(compat):
    assert compat.entry("test_hidden_states_output")["reasons_skipped"] == ["aster: Aster doesn"]


def test_a_skip_in_a_class_that_inherits_nothing_counts(compat):
    assert compat.entry("test_attention_outputs")["models_skipped"] == ["aster"]


def test_the_last_def_of_a_name_wins_over_all_classes_of_a_model(compat):
    assert compat.entry("test_signature")["models_skipped"] == ["cedar"]


def test_equals_what_the_checkout_s_own_script_writes(transformers_checkout, tmp_path):
    script = transformers_checkout / "utils" / "scan_skipped_tests.py"
    command = [sys.executable, str(script), "--output_dir", str(tmp_path)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    subprocess.run(command, cwd=transformers_checkout, env=environment, check=True, capture_output=True)
    upstream = json.loads((tmp_path / "all_tests_scan_result.json").read_text(encoding="utf-8"))
    ours = scan_as_upstream(transformers_checkout)
    assert {test: ours.entry(test) for test in ours.origins} == upstream
