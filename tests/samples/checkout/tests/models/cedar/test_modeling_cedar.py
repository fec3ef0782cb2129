"""A model whose skips hang on something: on conditions, on the machine, on a package."""

import os
import unittest

import pytest

from ...generation.test_utils import GenerationTesterMixin
from ...test_modeling_common import ModelTesterMixin
from ...testing_utils import require_accelerator, require_herbarium, require_torch, slow
from ...toys import ToyGenerator, ToyModel, ToyTester


class CedarModel(ToyModel):
    supports_embeds = False


class CedarForCausalLM(ToyGenerator):
    pass


@require_torch
class CedarModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (CedarModel, CedarForCausalLM)

    def setUp(self):
        self.model_tester = ToyTester(self, is_training=False)

    @unittest.skipIf(os.environ.get("SMALL_MACHINE") == "1", "Cedar needs room")
    def test_forward(self):
        super().test_forward()

    @pytest.mark.skipif("SMALL_MACHINE" in os.environ, reason="Cedar needs room")
    def test_save_load(self):
        self.assertTrue(CedarModel(2).size)

    @unittest.skipUnless(True, "never said")
    def test_signature(self):
        self.assertTrue(self.all_model_classes)

    def test_determinism(self):
        if os.environ.get("WINDY"):
            self.skipTest(reason="Cedar moves in the wind")
        self.assertTrue(self.all_model_classes)

    @require_accelerator
    def test_hidden_states_output(self):
        self.assertTrue(self.all_model_classes)

    @slow
    def test_tied_weights(self):
        self.assertTrue(self.all_model_classes)

    def test_can_use_safetensors(self):
        try:
            import cedar_chest
        except ImportError:
            self.skipTest(reason="Cedar is stored in a chest")
        self.assertTrue(cedar_chest)


@require_herbarium
class CedarPressedModelTest(ModelTesterMixin, unittest.TestCase):
    all_model_classes = (CedarModel,)

    def setUp(self):
        self.model_tester = ToyTester(self)

    @unittest.skip("pressed flat")
    def test_signature(self):
        pass
