"""Each way of keeping out of a common test, and the state, reason and line that the sample checkout must give it."""

from __future__ import annotations

import pytest
from twinlens.skips.states import State

ASTER = "aster/test_modeling_aster.py::AsterModelTest"
BIRCH = "birch/test_modeling_birch.py::BirchModelTest"
BIRCH_VISION = "birch/test_modeling_birch.py::BirchVisionModelTest"
CEDAR = "cedar/test_modeling_cedar.py::CedarModelTest"
CEDAR_PRESSED = "cedar/test_modeling_cedar.py::CedarPressedModelTest"
DAHLIA = "dahlia/test_modeling_dahlia.py::DahliaModelTest"
DAHLIA_WILD = "dahlia/test_modeling_dahlia.py::DahliaWildModelTest"
ELM = "elm/test_modeling_elm.py::ElmModelTest"
FERN = "fern/test_modeling_fern.py::FernModelTest"
FERN_SHADOW = "fern/test_modeling_fern.py::FernShadowModelTest"
FERN_SPORE = "fern/test_modeling_fern.py::FernSporeModelTest"
FROND = "fern/test_modeling_fern_frond.py::FernFrondModelTest"
UNFURLING = "fern/test_modeling_fern_frond.py::FernUnfurlingModelTest"
IVY = "ivy/test_modeling_ivy.py::IvyModelTest"


@pytest.fixture(scope="module")
def outcome(linked):
    classes = {cls.key.removeprefix("tests/models/"): cls for cls in linked.scan.classes}
    return lambda cls, test: classes[cls].outcomes[test]


@pytest.fixture(scope="module")
def deciding_line(checkout):
    return lambda outcome: (checkout / outcome.path).read_text(encoding="utf-8").splitlines()[outcome.line - 1].strip()


SKIPPED = {
    "a decorator, with an apostrophe in its reason": (
        ASTER,
        "test_hidden_states_output",
        "Aster doesn't keep its hidden states",
        '@unittest.skip(reason="Aster doesn\'t keep its hidden states")',
    ),
    "a reason that is a constant of the file": (
        ASTER,
        "test_inputs_embeds",
        "Aster looks tokens up itself",
        "@unittest.skip(reason=NO_EMBEDS)",
    ),
    "a decorator over many lines, its reason in adjacent strings of both quotes": (
        ASTER,
        "test_resize_tokens_embeddings",
        'Resizing is tested where the embeddings live, which is in the "root" model',
        "@unittest.skip(",
    ),
    "a mark of pytest, its reason an f-string over a constant": (
        ASTER,
        "test_training",
        "Training 12 layers takes an afternoon",
        '@pytest.mark.skip(reason=f"Training {LAYERS} layers takes an afternoon")',
    ),
    "skipTest first thing": (
        ASTER,
        "test_signature",
        "Aster's forward takes anything",
        'self.skipTest(reason="Aster\'s forward takes anything")',
    ),
    "SkipTest raised": (ASTER, "test_determinism", "Aster rolls dice", 'raise unittest.SkipTest("Aster rolls dice")'),
    "skipTest in every branch": (
        ASTER,
        "test_tied_weights",
        "too many weights to compare; or: nothing is tied",
        'self.skipTest(reason="too many weights to compare")',
    ),
    "an empty reason": (ASTER, "test_save_load", "", '@unittest.skip("")'),
    "an inherited test that is wrapped in an assignment": (
        ASTER,
        "test_can_use_safetensors",
        "Aster is stored in a seed bank",
        (
            'test_can_use_safetensors = unittest.skip("Aster is stored in a seed bank")'
            "(ModelTesterMixin.test_can_use_safetensors)"
        ),
    ),
    "a skip that the class inherits from another file": (
        FERN,
        "test_save_load",
        "Ferns have no seeds to save",
        '@unittest.skip("Ferns have no seeds to save")',
    ),
    "a call of a skipped test by super": (
        FERN_SHADOW,
        "test_forward",
        "Ferns have no seeds to save",
        '@unittest.skip("Ferns have no seeds to save")',
    ),
    "a decorator on the class": (
        FERN_SPORE,
        "test_forward",
        "Fern's spores are not ready",
        '@unittest.skip("Fern\'s spores are not ready")',
    ),
    "setUp that skips": (UNFURLING, "test_forward", "Fronds unfurl in May", 'self.skipTest("Fronds unfurl in May")'),
    "a decorator without a call": (IVY, "test_inputs_embeds", "", "@unittest.skip"),
    "a skip in a class behind a gate": (
        CEDAR_PRESSED,
        "test_signature",
        "pressed flat",
        '@unittest.skip("pressed flat")',
    ),
}


@pytest.mark.parametrize(("cls", "test", "reason", "line"), SKIPPED.values(), ids=SKIPPED)
def test_skipped(cls, test, reason, line, outcome, deciding_line):
    found = outcome(cls, test)
    assert (found.state, found.reason, found.runs) == (State.SKIPPED, reason, False)
    assert deciding_line(found) == line


CONDITIONAL = {
    "skipIf": (CEDAR, "test_forward", "Cedar needs room", "os.environ.get('SMALL_MACHINE') == '1'"),
    "pytest.mark.skipif": (CEDAR, "test_save_load", "Cedar needs room", "'SMALL_MACHINE' in os.environ"),
    "skipTest under an if": (CEDAR, "test_determinism", "Cedar moves in the wind", "os.environ.get('WINDY')"),
    "skipTest where an exception is caught": (
        CEDAR,
        "test_can_use_safetensors",
        "Cedar is stored in a chest",
        "ImportError is raised",
    ),
    "a guard of the inherited test that only a run can settle": (
        BIRCH,
        "test_inputs_embeds",
        "{model_class.__name__} takes no inputs_embeds",
        "not model_class.supports_embeds",
    ),
}


@pytest.mark.parametrize(("cls", "test", "reason", "condition"), CONDITIONAL.values(), ids=CONDITIONAL)
def test_conditional(cls, test, reason, condition, outcome):
    found = outcome(cls, test)
    assert (found.state, found.reason, found.condition, found.runs) == (State.CONDITIONAL, reason, condition, True)


GATED = {
    "by hardware, inherited": (ASTER, "test_cpu_offload", "test requires an accelerator", "@require_accelerator"),
    "by a switch, inherited": (ASTER, "test_torch_compile", "test is slow", "@slow"),
    "by hardware, on an override": (
        CEDAR,
        "test_hidden_states_output",
        "test requires an accelerator",
        "@require_accelerator",
    ),
    "by a package, on the class": (CEDAR_PRESSED, "test_forward", "test requires herbarium", "@require_herbarium"),
}


@pytest.mark.parametrize(("cls", "test", "reason", "line"), GATED.values(), ids=GATED)
def test_gated(cls, test, reason, line, outcome, deciding_line):
    found = outcome(cls, test)
    assert (found.state, found.reason, found.runs) == (State.GATED, reason, True)
    assert deciding_line(found) == line


DISABLED = {
    "a flag of the class": (
        BIRCH,
        "test_attention_outputs",
        "has_attentions = False (Model does not output attentions)",
        "has_attentions = False",
    ),
    "a flag whose message only repeats it": (
        BIRCH,
        "test_resize_tokens_embeddings",
        "test_resize_embeddings = False",
        "test_resize_embeddings = False",
    ),
    "a flag of the class that it inherits from": (
        BIRCH_VISION,
        "test_resize_tokens_embeddings",
        "test_resize_embeddings = False",
        "test_resize_embeddings = False",
    ),
    "a flag that is off by default": (
        ASTER,
        "test_resize_position_vector_embeddings",
        "test_resize_position_embeddings = False (Model does not have position embeddings)",
        "test_resize_position_embeddings = False",
    ),
    "a flag that leaves nothing to test": (
        ASTER,
        "test_composite_attention",
        "is_composite = False",
        "is_composite = False",
    ),
    "a guard in a helper that every variant calls": (
        BIRCH,
        "test_eager_matches_sdpa",
        "has_attentions = False (Model has no attentions to compare)",
        "has_attentions = False",
    ),
}


@pytest.mark.parametrize(("cls", "test", "reason", "line"), DISABLED.values(), ids=DISABLED)
def test_disabled(cls, test, reason, line, outcome, deciding_line):
    found = outcome(cls, test)
    assert (found.state, found.reason, found.runs) == (State.DISABLED, reason, False)
    assert deciding_line(found) == line


OTHERS = {
    "False in a test's place": (BIRCH, "test_tied_weights", State.SHADOWED, "test_tied_weights = False"),
    "None in a test's place": (BIRCH, "test_save_load", State.SHADOWED, "test_save_load = None"),
    "an override that passes": (BIRCH, "test_signature", State.EMPTY, "def test_signature(self):"),
    "an override of a docstring and a return": (BIRCH, "test_determinism", State.EMPTY, "def test_determinism(self):"),
    "loops over an empty list of classes": (
        BIRCH,
        "test_greedy_generate",
        State.VACUOUS,
        "all_generative_model_classes = ()",
    ),
    "a mark above parameterized.expand": (
        ASTER,
        "test_generate_from_inputs_embeds",
        State.PHANTOM,
        "@pytest.mark.generate",
    ),
    "a skip above parameterized.expand": (
        DAHLIA_WILD,
        "test_assisted_decoding",
        State.PHANTOM,
        '@unittest.skip("This decorates None")',
    ),
    "a decorator that is not called": (ASTER, "test_prompt_lookup_decoding", State.PHANTOM, "@is_flaky"),
    "shadowed even where the whole class is skipped": (
        FERN_SPORE,
        "test_tied_weights",
        State.SHADOWED,
        "test_tied_weights = False",
    ),
}


@pytest.mark.parametrize(("cls", "test", "state", "line"), OTHERS.values(), ids=OTHERS)
def test_not_a_test_any_more(cls, test, state, line, outcome, deciding_line):
    found = outcome(cls, test)
    assert found.state == state
    assert deciding_line(found) == line


RUNS = {
    "an untouched test": (ASTER, "test_forward"),
    "skipUnless of what always holds": (CEDAR, "test_signature"),
    "a flag that a subclass switches on again": (BIRCH_VISION, "test_attention_outputs"),
    "an override of a skip": (FERN, "test_signature"),
    "an override that was deleted again": (ELM, "test_signature"),
    "the last of two tests of one name": (ELM, "test_determinism"),
    "a skip in a helper class": (ELM, "test_forward"),
    "a mixin whose skip comes too late": (FROND, "test_save_load"),
    "a mixin whose skip loses against the copy that the base holds": (FERN_SHADOW, "test_determinism"),
    "a loop over classes that can't generate": (CEDAR, "test_greedy_generate"),
}


@pytest.mark.parametrize(("cls", "test"), RUNS.values(), ids=RUNS)
def test_runs(cls, test, outcome):
    assert outcome(cls, test).state is State.RUNS


VARIANTS = {
    "all run": (ASTER, "test_assisted_decoding", State.RUNS, ["runs", "runs"]),
    "one is skipped": (DAHLIA, "test_assisted_decoding", State.RUNS, ["runs", "skipped"]),
    "all are skipped": (DAHLIA, "test_eager_matches_sdpa", State.SKIPPED, ["skipped"] * 4),
    "a plain override stops none": (DAHLIA_WILD, "test_eager_matches_sdpa", State.RUNS, ["runs"] * 4),
    "a skip above the expansion reaches none": (DAHLIA_WILD, "test_assisted_decoding", State.PHANTOM, ["runs", "runs"]),
    "the order put right": (DAHLIA_WILD, "test_generate_from_inputs_embeds", State.RUNS, ["runs", "runs"]),
    "nothing to generate with": (BIRCH, "test_assisted_decoding", State.VACUOUS, ["vacuous", "vacuous"]),
}


@pytest.mark.parametrize(("cls", "test", "state", "variants"), VARIANTS.values(), ids=VARIANTS)
def test_variants_of_a_parameterised_test(cls, test, state, variants, outcome):
    found = outcome(cls, test)
    assert found.state is state
    assert [variant.state.value for _, variant in found.variants] == variants
    assert found.runs is ("runs" in variants)


def test_variants_have_the_names_that_parameterized_gives_them(outcome):
    assert [name for name, _ in outcome(ASTER, "test_generate_from_inputs_embeds").variants] == [
        "test_generate_from_inputs_embeds_0_greedy",
        "test_generate_from_inputs_embeds_1_beam_search",
    ]


def test_only_collected_classes_that_inherit_a_common_mixin_have_rows(linked):
    names = {cls.name for cls in linked.scan.classes}
    assert {"AsterModelTest", "FernShadowModelTest"} <= names
    assert names.isdisjoint(
        {"AsterIntegrationTest", "ElmModelTester", "ElmOldModelTest", "FernMixin", "HazelModelTest"}
    )


def test_only_tests_of_the_shared_mixins_are_common_tests(linked):
    origins = {test.origin for test in linked.scan.tests.values()}
    assert origins == {"common", "GenerationMixin"}
    assert "test_generation_is_long_enough" not in linked.scan.tests
    assert len(linked.scan.tests) == 21
