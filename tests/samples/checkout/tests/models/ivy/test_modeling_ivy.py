"""A model that was added last, and left out nearly nothing."""

import unittest

from ...generation.test_utils import GenerationTesterMixin
from ...test_modeling_common import ModelTesterMixin
from ...toys import ToyGenerator, ToyTester


class IvyForCausalLM(ToyGenerator):
    pass


class IvyModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (IvyForCausalLM,)

    def setUp(self):
        self.model_tester = ToyTester(self)

    @unittest.skip("Ivy climbs alone: no other model leaves this out")
    def test_greedy_generate(self):
        pass

    @unittest.skip
    def test_inputs_embeds(self):
        pass
