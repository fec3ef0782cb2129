import unittest

import pytest
from parameterized import parameterized

from ..testing_utils import is_flaky
from ..toys import ToyGenerator


class GenerationTesterMixin:
    @pytest.mark.generate
    def test_greedy_generate(self):
        inputs = self.model_tester.inputs()
        for model_class in self.all_generative_model_classes:
            self.assertEqual(model_class().generate(inputs), [8, 16, 24])

    @parameterized.expand([("random",), ("same",)])
    @pytest.mark.generate
    def test_assisted_decoding(self, assistant):
        for model_class in self.all_generative_model_classes:
            self.assertTrue(model_class().generate([len(assistant)]))

    @pytest.mark.generate
    @parameterized.expand([("greedy", 1), ("beam search", 2)])
    def test_generate_from_inputs_embeds(self, _, num_beams):
        for model_class in self.all_generative_model_classes:
            self.assertTrue(model_class().generate([num_beams]))

    @pytest.mark.generate
    @is_flaky
    def test_prompt_lookup_decoding(self):
        for model_class in self.all_generative_model_classes:
            self.assertTrue(model_class().generate([1]))


class GenerationIntegrationTests(unittest.TestCase):
    def test_generation_is_long_enough(self):
        self.assertEqual(len(ToyGenerator().generate([1, 2])), 2)
