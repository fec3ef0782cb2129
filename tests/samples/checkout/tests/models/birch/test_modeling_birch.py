"""A model with flags, and with assignments that take tests away without a trace."""

import unittest

from ...generation.test_utils import GenerationTesterMixin
from ...test_modeling_common import ModelTesterMixin
from ...toys import ToyModel, ToyTester


class BirchModel(ToyModel):
    pass


class BirchModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (BirchModel,)
    all_generative_model_classes = ()
    has_attentions = False
    test_resize_embeddings = False
    test_pruning = False
    test_tied_weights = False
    test_save_load = None

    def setUp(self):
        self.model_tester = ToyTester(self)

    def test_signature(self):
        pass

    def test_determinism(self):
        """Birch sways."""
        return


class BirchVisionModelTest(BirchModelTest):
    """Switches one flag back on, and one more test off."""

    has_attentions = True
    is_composite = True
    test_resize_position_embeddings = True

    @unittest.skip("Birch sees nothing at night")
    def test_forward(self):
        pass
