"""A model with parameterised tests of its own, right and wrong."""

import unittest

import pytest
from parameterized import parameterized

from ...generation.test_utils import GenerationTesterMixin
from ...test_modeling_common import PRECISIONS, ModelTesterMixin
from ...toys import ToyGenerator, ToyTester


class DahliaForCausalLM(ToyGenerator):
    pass


class DahliaModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (DahliaForCausalLM,)

    def setUp(self):
        self.model_tester = ToyTester(self)

    @parameterized.expand(PRECISIONS)
    @unittest.skip("Dahlia has one precision")
    def test_eager_matches_sdpa(self, name, side):
        pass

    @unittest.skip("Dahlia has no second self")
    def test_assisted_decoding_1_same(self):
        pass

    @unittest.skip("This variant was renamed long ago")
    def test_assisted_decoding_2_other(self):
        pass


class DahliaWildModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (DahliaForCausalLM,)

    def setUp(self):
        self.model_tester = ToyTester(self)

    @unittest.skip("This adds a skipped test, and its variants run all the same")
    def test_eager_matches_sdpa(self):
        pass

    @unittest.skip("This decorates None")
    @parameterized.expand([("random",), ("same",)])
    def test_assisted_decoding(self, assistant):
        self.assertTrue(assistant)

    @parameterized.expand([("greedy", 1), ("beam search", 2)])
    @pytest.mark.generate
    def test_generate_from_inputs_embeds(self, _, num_beams):
        self.assertTrue(num_beams)
