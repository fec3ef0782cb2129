"""The second file of a model; its classes inherit across files."""

import unittest

from ...test_modeling_common import ModelTesterMixin
from ...toys import ToyModel, ToyTester
from .test_modeling_fern import FernMixin


class FernFrondModel(ToyModel):
    pass


class FernFrondModelTest(ModelTesterMixin, FernMixin, unittest.TestCase):
    """The local mixin comes after the common one: its skips lose."""

    all_model_classes = (FernFrondModel,)

    def setUp(self):
        self.model_tester = ToyTester(self)


class FernUnfurlingModelTest(ModelTesterMixin, unittest.TestCase):
    all_model_classes = (FernFrondModel,)

    def setUp(self):
        self.skipTest("Fronds unfurl in May")
