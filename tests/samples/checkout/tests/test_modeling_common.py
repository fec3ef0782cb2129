import functools
import inspect

from parameterized import parameterized

from .testing_utils import is_flaky, require_accelerator, slow


PRECISIONS = [(f"{name}_{side}", side) for name in ("half", "full") for side in ("left", "right")]


def retried(test):
    @functools.wraps(test)
    def again(*args, **kwargs):
        return test(*args, **kwargs)

    return again


def _compare_precisions(self, name, side):
    if not self.has_attentions:
        self.skipTest(reason="Model has no attentions to compare")
    for model_class in self.all_model_classes:
        self.assertIn(side, name, model_class.__name__)


class ModelTesterMixin:
    all_model_classes = ()
    has_attentions = True
    test_resize_embeddings = True
    test_resize_position_embeddings = False
    is_composite = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in dir(cls):
            test = getattr(cls, name)
            if name.startswith("test_") and callable(test):
                setattr(cls, name, retried(test))

    @property
    def all_generative_model_classes(self):
        return tuple(model_class for model_class in self.all_model_classes if model_class.can_generate)

    def test_forward(self):
        inputs = self.model_tester.inputs()
        for model_class in self.all_model_classes:
            self.assertEqual(model_class().forward(inputs), [2, 4, 6])

    def test_save_load(self):
        for model_class in self.all_model_classes:
            self.assertEqual(model_class(8).size, 8)

    def test_attention_outputs(self):
        if not self.has_attentions:
            self.skipTest(reason="Model does not output attentions")
        self.assertTrue(self.all_model_classes)

    def test_hidden_states_output(self):
        def check(model_class):
            self.assertTrue(model_class().size)

        for model_class in self.all_model_classes:
            check(model_class)
        self.assertTrue(self.model_tester.inputs())

    def test_inputs_embeds(self):
        for model_class in self.all_model_classes:
            if not model_class.supports_embeds:
                self.skipTest(reason=f"{model_class.__name__} takes no inputs_embeds")
            self.assertTrue(model_class().forward([0]))

    def test_resize_tokens_embeddings(self):
        if not self.test_resize_embeddings:
            self.skipTest(reason="test_resize_embeddings is set to `False`")
        self.assertTrue(self.all_model_classes)

    def test_resize_position_vector_embeddings(self):
        if not self.test_resize_position_embeddings:
            self.skipTest(reason="Model does not have position embeddings")
        self.assertTrue(self.all_model_classes)

    def check_training(self, use_reentrant):
        if not self.has_attentions and use_reentrant:
            self.skipTest(reason="Only attention layers are checkpointed")
        self.assertTrue(self.all_model_classes)

    def test_training(self):
        if not self.model_tester.is_training:
            self.skipTest(reason="ModelTester is not configured to run training tests")
        self.check_training(use_reentrant=False)

    def test_training_reentrant(self):
        self.check_training(use_reentrant=True)

    def test_composite_attention(self):
        if self.is_composite and self.has_attentions:
            self.assertTrue(self.all_model_classes)

    def test_determinism(self):
        for model_class in self.all_model_classes:
            self.assertEqual(model_class().forward([1]), model_class().forward([1]))

    def test_signature(self):
        for model_class in self.all_model_classes:
            self.assertIn("values", inspect.signature(model_class.forward).parameters)

    def test_can_use_safetensors(self):
        self.assertTrue(self.all_model_classes)

    def test_tied_weights(self):
        self.assertTrue(self.all_model_classes)

    @require_accelerator
    def test_cpu_offload(self):
        self.assertTrue(self.all_model_classes)

    @slow
    @is_flaky()
    def test_torch_compile(self):
        self.assertTrue(self.all_model_classes)

    @parameterized.expand(PRECISIONS)
    def test_eager_matches_sdpa(self, name, side):
        _compare_precisions(self, name, side)
