from __future__ import annotations

import pytest
from twinlens.skips.files import Files
from twinlens.skips.lints import CATALOGUE, Linter
from twinlens.skips.scan import scan


@pytest.fixture(scope="module")
def findings(linked):
    return list(Linter(linked).all_findings())


def _of(findings, code):
    return [(found.path.rpartition("/")[2], found.message) for found in findings if found.code == code]


def test_a_skip_of_a_test_that_is_not_inherited(findings):
    assert _of(findings, "skip-overrides-nothing") == [
        (
            "test_modeling_dahlia.py",
            (
                "test_eager_matches_sdpa is parameterised: this adds one skipped test, and its 4 variants still run; "
                "repeat the parameterized.expand above the skip"
            ),
        ),
        (
            "test_modeling_elm.py",
            "ElmModelTest inherits no test_save_and_load, so this skips nothing; is test_save_load meant?",
        ),
    ]


def test_a_skip_of_a_variant_that_is_gone(findings):
    assert _of(findings, "stale-variant") == [
        (
            "test_modeling_dahlia.py",
            (
                "test_assisted_decoding has no variant test_assisted_decoding_2_other, so this skips nothing; "
                "is test_assisted_decoding_1_same meant?"
            ),
        )
    ]


def test_tests_that_no_runner_finds(findings):
    assert [message for _, message in _of(findings, "test-never-collected")] == [
        "ElmModelTester is no TestCase and no collected class inherits from it, so test_forward never runs",
        "ElmModelTester is no TestCase and no collected class inherits from it, so test_leaves never runs",
        "test_determinism is bound again further down in ElmModelTest, so this one never runs",
        "test_signature is deleted further down in ElmModelTest, so this one never runs",
        "test_roots is nested inside a member of ElmModelTest; no runner looks there",
        "test_growth is nested inside a member of ElmModelTest; no runner looks there",
        "ElmOldModelTest is not collected and no collected class inherits from it, so test_forward never runs",
    ]


def test_assignments_that_hide_a_test(findings):
    assert _of(findings, "shadowed-test") == [
        ("test_modeling_birch.py", "test_tied_weights = False hides the inherited test: it is not skipped, it is gone"),
        ("test_modeling_birch.py", "test_save_load = None hides the inherited test: it is not skipped, it is gone"),
        ("test_modeling_fern.py", "test_tied_weights = False hides the inherited test: it is not skipped, it is gone"),
    ]


def test_decorators_that_miss_the_test(findings):
    assert _of(findings, "marker-order") == [
        (
            "test_utils.py",
            (
                "@pytest.mark.generate above @parameterized.expand decorates None "
                "and is collected as a test that tests nothing"
            ),
        ),
        (
            "test_modeling_dahlia.py",
            "@unittest.skip above @parameterized.expand decorates None and is collected as a test that tests nothing",
        ),
    ]
    assert _of(findings, "decorator-not-called") == [
        ("test_utils.py", "@is_flaky is not called: it puts a decorator in the place of test_prompt_lookup_decoding")
    ]


def test_a_flag_that_no_test_reads(findings):
    assert _of(findings, "flag-nobody-reads") == [
        ("test_modeling_birch.py", "no test of BirchModelTest reads test_pruning")
    ]


def test_overrides_that_do_nothing(findings):
    assert [message.split()[0] for _, message in _of(findings, "empty-override")] == [
        "test_signature",
        "test_determinism",
    ]


def test_skips_without_a_reason(findings):
    assert _of(findings, "skip-without-reason") == [
        ("test_modeling_aster.py", "test_save_load is skipped without a reason"),
        ("test_modeling_ivy.py", "test_inputs_embeds is skipped without a reason"),
    ]


def test_a_skip_that_hardly_any_other_model_makes(findings):
    assert _of(findings, "rare-skip") == [
        ("test_modeling_aster.py", "6 of 7 models run test_hidden_states_output; this is the only one that does not"),
        ("test_modeling_aster.py", "6 of 7 models run test_training; this is the only one that does not"),
        ("test_modeling_aster.py", "6 of 7 models run test_can_use_safetensors; this is the only one that does not"),
    ]


def test_no_skip_is_rare_at_a_threshold_of_none(linked):
    assert not _of(Linter(linked, rare=0).all_findings(), "rare-skip")


def test_every_finding_has_a_code_of_the_catalogue_and_stands_on_its_name(findings, checkout):
    for found in findings:
        assert found.code in CATALOGUE
        line = (checkout / found.path).read_text(encoding="utf-8").splitlines()[found.line - 1]
        underlined = line.encode()[found.column : found.column + found.length].decode()
        assert underlined and underlined in found.message


def test_the_catalogue_explains_every_code():
    assert all(lint.title and lint.why.endswith(".") for lint in CATALOGUE.values())
    assert {"skip-overrides-nothing", "rare-skip", "marker-order"} <= set(CATALOGUE)


def test_fixes_name_whole_statements(findings, checkout):
    fixed = {found.code: found for found in findings if found.fix is not None and "dahlia" in found.path}
    lines = (checkout / "tests/models/dahlia/test_modeling_dahlia.py").read_text(encoding="utf-8").splitlines()
    stale = fixed["stale-variant"].fix
    assert lines[stale.first_line - 1].strip() == '@unittest.skip("This variant was renamed long ago")'
    assert lines[stale.last_line - 1].strip() == "pass"
    order = fixed["marker-order"].fix
    assert lines[order.first_line - 1].strip() == '@unittest.skip("This decorates None")'
    assert lines[order.below - 1].strip() == '@parameterized.expand([("random",), ("same",)])'


def test_a_model_tester_method_that_is_called_is_no_lost_test(tree):
    root = tree(
        {
            "tests/models/used/test_modeling_used.py": """
import unittest
from ...test_modeling_common import ModelTesterMixin


class UsedModelTester:
    def test_shape(self, parent):
        parent.assertTrue(self)


class UsedModelTest(ModelTesterMixin, unittest.TestCase):
    all_model_classes = (object,)

    def test_forward(self):
        self.model_tester.test_shape(self)
"""
        }
    )
    assert list(Linter(scan(Files(root))).all_findings()) == []
