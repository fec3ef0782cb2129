"""A model with tests that no runner finds, and with skips of tests that are not there."""

import unittest

from ...test_modeling_common import ModelTesterMixin
from ...toys import ToyModel, ToyTester


class ElmModel(ToyModel):
    pass


class ElmModelTester(ToyTester):
    @unittest.skip("A skip in a helper class skips nothing")
    def test_forward(self):
        pass

    def test_leaves(self):
        self.parent.assertTrue(self.inputs())


class ElmModelTest(ModelTesterMixin, unittest.TestCase):
    all_model_classes = (ElmModel,)

    def setUp(self):
        self.model_tester = ElmModelTester(self)

    @unittest.skip("Elm was renamed, its test too")
    def test_save_and_load(self):
        pass

    @unittest.skip("Elm has its own roots")
    def test_determinism(self):
        pass

    def test_determinism(self):  # noqa: F811
        self.assertEqual(ElmModel().forward([1]), [2])

    def test_signature(self):
        return super().test_signature()

    del test_signature

    def test_tied_weights(self):
        def test_roots():
            self.assertTrue(self.all_model_classes)

        self.assertTrue(self.all_model_classes)

    class ElmSeedling:
        def test_growth(self):
            raise AssertionError("no runner comes here")


class ElmOldModelTest(ElmModelTest):
    __test__ = False

    def test_forward(self):
        raise AssertionError("switched off")
