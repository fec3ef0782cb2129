"""What can be amiss in a checkout: one sentence for each fault, and the rest is scanned all the same."""

from __future__ import annotations

import pytest
from twinlens.skips.files import Files
from twinlens.skips.notices import ScanError
from twinlens.skips.scan import scan
from twinlens.skips.states import State

GOOD = """
import unittest
from ...test_modeling_common import ModelTesterMixin


class {name}(ModelTesterMixin, unittest.TestCase):
    all_model_classes = (object,)
"""


def _scan(root):
    return scan(Files(root)).scan


def _told(scan):
    return [str(notice) for notice in scan.notices]


def _classes(scan):
    return {cls.name: cls for cls in scan.classes}


def test_a_folder_without_model_tests_is_named_with_the_remedy(tmp_path):
    with pytest.raises(ScanError) as raised:
        _scan(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} has no tests/models/**/test_modeling_*.py; "
        "run from the root of a transformers checkout, or name it with --root"
    )


def test_a_file_that_does_not_parse_is_left_out(tree):
    root = tree(
        {
            "tests/models/good/test_modeling_good.py": GOOD.format(name="GoodTest"),
            "tests/models/torn/test_modeling_torn.py": "class TornTest(:\n",
        }
    )
    found = _scan(root)
    assert _told(found) == [
        "tests/models/torn/test_modeling_torn.py:1: does not parse (invalid syntax); it is left out until it does"
    ]
    assert set(_classes(found)) == {"GoodTest"}
    assert found.models == ("good", "torn")


def test_a_base_that_is_not_found_is_named_and_the_other_bases_count(tree):
    text = GOOD.format(name="HalfTest").replace("(ModelTesterMixin", "(GoneMixin, ModelTesterMixin")
    found = _scan(tree({"tests/models/half/test_modeling_half.py": text}))
    assert _told(found) == [
        (
            "tests/models/half/test_modeling_half.py:6: "
            "the base GoneMixin of HalfTest is not found; what it would bring is left out"
        )
    ]
    assert _classes(found)["HalfTest"].outcomes["test_forward"].state is State.RUNS


def test_a_flag_that_an_unseen_base_may_set_settles_nothing(tree):
    common = """
class ModelTesterMixin:
    def test_forward(self):
        if getattr(self, "has_forward", None) is None:
            self.skipTest("no forward")
        self.assertTrue(self.all_model_classes)
"""
    text = GOOD.format(name="HalfTest").replace("(ModelTesterMixin", "(GoneMixin, ModelTesterMixin")
    whole = GOOD.format(name="WholeTest")
    found = _classes(
        _scan(
            tree(
                {
                    "tests/test_modeling_common.py": common,
                    "tests/models/half/test_modeling_half.py": text,
                    "tests/models/whole/test_modeling_whole.py": whole,
                }
            )
        )
    )
    assert found["HalfTest"].outcomes["test_forward"].state is State.CONDITIONAL
    assert found["WholeTest"].outcomes["test_forward"].state is State.DISABLED
    assert found["WholeTest"].outcomes["test_forward"].reason == "has_forward is not set (no forward)"


def test_a_cycle_of_bases_is_broken_and_told(tree):
    one = (
        GOOD.format(name="OneTest").replace("(ModelTesterMixin", "(TwoTest, ModelTesterMixin")
        + "\n\nfrom ..two.test_modeling_two import TwoTest\n"
    )
    two = (
        GOOD.format(name="TwoTest").replace("(ModelTesterMixin", "(OneTest, ModelTesterMixin")
        + "\n\nfrom ..one.test_modeling_one import OneTest\n"
    )
    found = _scan(tree({"tests/models/one/test_modeling_one.py": one, "tests/models/two/test_modeling_two.py": two}))
    assert _told(found) == [
        "tests/models/two/test_modeling_two.py:6: the bases of TwoTest lead back to it; OneTest is left out of them"
    ]
    assert {"OneTest", "TwoTest"} <= set(_classes(found))


def test_bases_that_python_cannot_order_are_read_left_to_right(tree):
    text = (
        GOOD.format(name="CrossedTest").replace(
            "(ModelTesterMixin, unittest.TestCase)", "(object, ModelTesterMixin, SubMixin, unittest.TestCase)"
        )
        + "\n\nclass SubMixin(ModelTesterMixin):\n    pass\n"
    )
    found = _scan(tree({"tests/models/crossed/test_modeling_crossed.py": text}))
    assert _told(found) == [
        (
            "tests/models/crossed/test_modeling_crossed.py:6: "
            "Python can't order the bases of CrossedTest; they are read left to right"
        )
    ]
    assert _classes(found)["CrossedTest"].outcomes["test_forward"].state is State.RUNS


def test_two_folders_of_one_model_count_as_one_model(tree):
    found = _scan(
        tree(
            {
                "tests/models/twin/test_modeling_twin.py": GOOD.format(name="TwinTest"),
                "tests/models/old/twin/test_modeling_twin.py": GOOD.format(name="TwinTest").replace("...", "...."),
            }
        )
    )
    assert _told(found) == [
        (
            "tests/models/twin/test_modeling_twin.py:1: "
            "tests/models/twin and tests/models/old/twin both stand for the model twin; they are counted as one"
        )
    ]
    assert found.models == ("twin",)
    assert [cls.key for cls in found.classes] == [
        "tests/models/old/twin/test_modeling_twin.py::TwinTest",
        "tests/models/twin/test_modeling_twin.py::TwinTest",
    ]


def test_a_checkout_without_common_files_says_so(tree):
    root = tree({"tests/models/good/test_modeling_good.py": GOOD.format(name="GoodTest")})
    (root / "tests/test_modeling_common.py").unlink()
    found = _scan(root)
    assert "tests/test_modeling_common.py:1: is not in this checkout; its common tests are left out" in _told(found)
    assert found.classes == ()


def test_recursion_among_helpers_comes_to_an_end(tree):
    text = (
        GOOD.format(name="LoopTest")
        + """
    def test_forward(self):
        self.helper()

    def helper(self):
        self.other()

    def other(self):
        self.helper()
"""
    )
    found = _scan(tree({"tests/models/loop/test_modeling_loop.py": text}))
    assert _classes(found)["LoopTest"].outcomes["test_forward"].state is State.RUNS


def test_a_constant_that_refers_to_itself_is_unknown(tree):
    text = GOOD.format(name="SelfTest").replace("(object,)", "CLASSES") + "\n\nCLASSES = CLASSES\n"
    found = _scan(tree({"tests/models/own/test_modeling_own.py": text}))
    assert _classes(found)["SelfTest"].outcomes["test_forward"].state is State.RUNS
