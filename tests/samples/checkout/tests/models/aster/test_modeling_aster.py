"""A model that leaves tests out as it should: with a skip and a reason, in every layout that a skip can have."""

import unittest

import pytest

from ...generation.test_utils import GenerationTesterMixin
from ...test_modeling_common import ModelTesterMixin
from ...testing_utils import require_torch
from ...toys import ToyGenerator, ToyModel, ToyTester


class AsterModel(ToyModel):
    pass


class AsterForCausalLM(ToyGenerator):
    pass


NO_EMBEDS = "Aster looks tokens up itself"
LAYERS = 12


@require_torch
class AsterModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (AsterModel, AsterForCausalLM)

    def setUp(self):
        self.model_tester = ToyTester(self)

    @unittest.skip(reason="Aster doesn't keep its hidden states")
    def test_hidden_states_output(self):
        pass

    @unittest.skip(reason=NO_EMBEDS)
    def test_inputs_embeds(self):
        pass

    @unittest.skip(
        reason=(
            "Resizing is tested where the embeddings live, "
            'which is in the "root" model'
        )
    )
    def test_resize_tokens_embeddings(self):
        pass

    @pytest.mark.skip(reason=f"Training {LAYERS} layers takes an afternoon")
    def test_training(self):
        pass

    def test_signature(self):
        self.skipTest(reason="Aster's forward takes anything")

    def test_determinism(self):
        raise unittest.SkipTest("Aster rolls dice")

    def test_tied_weights(self):
        weights = [model_class().size for model_class in self.all_model_classes]
        if len(weights) > 100:
            self.skipTest(reason="too many weights to compare")
        else:
            self.skipTest(reason="nothing is tied")

    @unittest.skip("")
    def test_save_load(self):
        pass

    test_can_use_safetensors = unittest.skip("Aster is stored in a seed bank")(ModelTesterMixin.test_can_use_safetensors)


class AsterIntegrationTest(unittest.TestCase):
    @unittest.skip("A skip of another test of the same name, in a class that inherits no common test")
    def test_attention_outputs(self):
        pass

    def test_bloom(self):
        self.assertEqual(AsterForCausalLM().generate([1]), [8])
