"""Which common tests really run, asked over the protocol of a copy of the sample checkout."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor
from lsprotocol import types

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHECKOUT = Path(__file__).parents[1] / "samples" / "checkout"
COMMON = "tests/test_modeling_common.py"
BIRCH = "tests/models/birch/test_modeling_birch.py"
DAHLIA = "tests/models/dahlia/test_modeling_dahlia.py"
ELM = "tests/models/elm/test_modeling_elm.py"
IVY = "tests/models/ivy/test_modeling_ivy.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    workspace = tmp_path_factory.mktemp("workspace")
    return shutil.copytree(CHECKOUT, workspace / "checkout", ignore=shutil.ignore_patterns("__pycache__"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scanned(root, tmp_path_factory):
    """A server on the folder above the checkout, once it has scanned it."""
    settings = {"library": [str(root)], "skips": {"rare": 3}}
    async with editor(tmp_path_factory.mktemp("cache"), settings, folders=[root.parent]) as opened:
        await opened.ask("twinlens/skippedTests", {})
        yield opened


@pytest.fixture
def text(root):
    return lambda path: (root / path).read_text(encoding="utf-8")


async def _lenses(scanned: Editor, uri: str) -> list[types.CodeLens]:
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    return list(await scanned.client.text_document_code_lens_async(params) or [])


async def _problems(scanned: Editor, uri: str) -> list[types.Diagnostic]:
    params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
    report = await scanned.client.text_document_diagnostic_async(params)
    return [problem for problem in report.items if problem.code != "similar-class"]


def _line_below(lens: types.CodeLens, text: str) -> str:
    return text.split("\n")[lens.range.start.line].strip()


async def _fixed(scanned: Editor, uri: str, text: str, code: str) -> str:
    """The text after the preferred fix of the first problem with this code."""
    problem = next(problem for problem in await _problems(scanned, uri) if problem.code == code)
    context = types.CodeActionContext([problem])
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), problem.range, context)
    actions = await scanned.client.text_document_code_action_async(params)
    preferred = next(action for action in actions if action.is_preferred)
    (edit,) = preferred.edit.changes[uri]
    lines = text.split("\n")
    start, end = edit.range.start.line, edit.range.end.line
    return "\n".join(lines[:start]) + "\n" + edit.new_text + "\n".join(lines[end:])


async def test_every_test_of_a_common_file_tells_how_many_models_do_not_run_it(scanned, root, text):
    uri = (root / COMMON).as_uri()
    titles = {_line_below(lens, text(COMMON)): lens.command.title for lens in await _lenses(scanned, uri)}
    assert titles["def test_signature(self):"] == "not run by 2 of 7 models (28.6 %)"
    assert titles["def test_forward(self):"] == "run by all 7 models"
    assert titles["@slow"] == "run by all 7 models"
    assert len(titles) == 17


async def test_a_model_s_classes_overrides_and_flags_tell_what_does_not_run(scanned, root, text):
    lenses = await _lenses(scanned, (root / BIRCH).as_uri())
    told = [(_line_below(lens, text(BIRCH)), lens.command.title) for lens in lenses]
    assert told[:6] == [
        (
            "class BirchModelTest(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):",
            "13 of 21 common tests don't run: 5 disabled, 2 shadowed, 2 empty, 2 vacuous, 2 phantom",
        ),
        ("all_generative_model_classes = ()", "keeps 2 common tests from running"),
        ("has_attentions = False", "keeps 2 common tests from running"),
        ("test_resize_embeddings = False", "keeps 1 common test from running"),
        ("test_tied_weights = False", "shadowed here · not run by 2 of 7 models (28.6 %)"),
        ("test_save_load = None", "shadowed here · not run by 2 of 7 models (28.6 %)"),
    ]


async def test_a_lens_leads_to_the_places_that_decide(scanned, root, text):
    lenses = await _lenses(scanned, (root / COMMON).as_uri())
    lens = next(lens for lens in lenses if _line_below(lens, text(COMMON)) == "def test_inputs_embeds(self):")
    assert lens.command.command == "twinlens.showSkips"
    uri, _, test, class_name = lens.command.arguments
    answer = await scanned.ask("twinlens/skipPlaces", {"uri": uri, "test": test, "className": class_name})
    deciding = {Path(place.path).read_text(encoding="utf-8").split("\n")[place.line - 1] for place in answer.places}
    assert {line.strip() for line in deciding} == {
        "@unittest.skip(reason=NO_EMBEDS)",
        '@unittest.skip("Fern\'s spores are not ready")',
        'self.skipTest("Fronds unfurl in May")',
        "@unittest.skip",
    }


async def test_the_lens_of_a_class_leads_to_what_the_class_does_not_run(scanned, root):
    params = {"uri": (root / IVY).as_uri(), "test": None, "className": "IvyModelTest"}
    answer = await scanned.ask("twinlens/skipPlaces", params)
    assert {place.test for place in answer.places} == {
        "test_inputs_embeds",
        "test_resize_position_vector_embeddings",
        "test_composite_attention",
        "test_greedy_generate",
        "test_prompt_lookup_decoding",
    }
    assert {place.className for place in answer.places} == {"IvyModelTest"}


async def test_hover_on_a_test_groups_the_reasons(scanned, root, text):
    markdown = await scanned.hover_on((root / COMMON).as_uri(), text(COMMON), "test_signature(self)")
    assert markdown == (
        "**test_signature**: not run by 2 of 7 models (28.6 %)\n"
        "\n"
        "2 more run it in some of their classes only.\n"
        "\n"
        "| Models | Reason |\n"
        "|--:|:--|\n"
        "| 1&ensp; | Aster's forward takes anything |\n"
        "| 1&ensp; | the method does nothing |"
    )


async def test_hover_on_an_override_tells_what_it_comes_to_here(scanned, root, text):
    markdown = await scanned.hover_on((root / IVY).as_uri(), text(IVY), "test_greedy_generate(self)")
    assert "Here: **skipped** · Ivy climbs alone: no other model leaves this out" in markdown


async def test_hover_on_a_class_and_on_a_flag_lists_the_tests(scanned, root, text):
    on_class = await scanned.hover_on((root / BIRCH).as_uri(), text(BIRCH), "BirchVisionModelTest(")
    assert "| shadowed&ensp; | test\\_save_load" not in on_class
    assert "| shadowed&ensp; | test_save_load = None&ensp; | `test_save_load` |" in on_class
    on_flag = await scanned.hover_on((root / BIRCH).as_uri(), text(BIRCH), "has_attentions = False")
    assert on_flag == (
        "**has_attentions** keeps common tests of BirchModelTest from running: "
        "`test_attention_outputs`, `test_eager_matches_sdpa`"
    )
    assert await scanned.hover_on((root / BIRCH).as_uri(), text(BIRCH), "setUp") == ""


async def test_problems_have_a_code_a_sentence_and_the_reason_why_it_matters(scanned, root):
    problems = await _problems(scanned, (root / DAHLIA).as_uri())
    assert [problem.code for problem in problems] == ["stale-variant", "skip-overrides-nothing", "marker-order"]
    assert problems[0].severity is types.DiagnosticSeverity.Warning
    assert problems[0].message.endswith(
        "is test_assisted_decoding_1_same meant?\n"
        "The parameterised test has no variant of that name any more, so the variants that it has all run."
    )


async def test_a_dead_skip_is_removed_whole(scanned, root, text):
    fixed = await _fixed(scanned, (root / ELM).as_uri(), text(ELM), "skip-overrides-nothing")
    assert "test_save_and_load" not in fixed and "Elm was renamed" not in fixed
    assert fixed.count("\n") == text(ELM).count("\n") - 4
    compile(fixed, "elm", "exec")


async def test_decorators_are_put_in_order(scanned, root, text):
    fixed = await _fixed(scanned, (root / DAHLIA).as_uri(), text(DAHLIA), "marker-order")
    assert (
        '    @parameterized.expand([("random",), ("same",)])\n'
        '    @unittest.skip("This decorates None")\n'
        "    def test_assisted_decoding(self, assistant):\n"
    ) in fixed


async def test_a_problem_can_be_silenced_where_it_stands(scanned, root, text):
    uri = (root / BIRCH).as_uri()
    silenced = text(BIRCH).replace(
        "test_pruning = False", "test_pruning = False  # twinlens: ignore[flag-nobody-reads]"
    )
    scanned.open(uri, silenced)
    assert "flag-nobody-reads" not in [problem.code for problem in await _problems(scanned, uri)]
    scanned.type(uri, text(BIRCH))
    assert "flag-nobody-reads" in [problem.code for problem in await _problems(scanned, uri)]
    scanned.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))


async def test_everything_follows_what_is_typed_and_not_saved(scanned, root, text):
    uri, common = (root / IVY).as_uri(), (root / COMMON).as_uri()
    scanned.open(uri, text(IVY))
    more = '\n    @unittest.skip("Ivy does as it likes")\n    def test_forward(self):\n        pass\n'
    scanned.type(uri, text(IVY) + more)
    told = [lens.command.title for lens in await _lenses(scanned, uri)]
    assert told[-1] == "skipped here · not run by 1 of 7 models (14.3 %)"
    assert "not run by 1 of 7 models (14.3 %)" in [lens.command.title for lens in await _lenses(scanned, common)]
    assert [problem.code for problem in await _problems(scanned, uri)][-1] == "rare-skip"
    scanned.type(uri, text(IVY) + "\n    @unittest.skip(")
    assert [lens.command.title for lens in await _lenses(scanned, uri)] == told
    scanned.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
    assert (await _lenses(scanned, common))[0].command.title == "run by all 7 models"


async def test_the_view_lists_the_least_run_tests_first_and_their_models(scanned, root):
    answer = await scanned.ask("twinlens/skippedTests", {})
    assert answer.note is None
    shares = [test.skipped / test.models for test in answer.tests]
    assert shares == sorted(shares, reverse=True)
    signature = next(test for test in answer.tests if test.name == "test_signature")
    assert (signature.skipped, signature.mixed, signature.models) == (2, 2, 7)
    assert {count.state: count.models for count in signature.states}["mixed"] == 2
    models = await scanned.ask("twinlens/skippingModels", {"test": "test_signature"})
    birch = next(model for model in models.models if model.model == "birch")
    assert birch.state == "empty"
    assert [cls.name for cls in birch.classes] == ["BirchModelTest", "BirchVisionModelTest"]
    assert birch.classes[0].path == str(root / BIRCH)


async def test_a_file_that_changes_on_disk_is_taken_up(scanned, root, text):
    before = text(ELM)
    (root / ELM).write_text(before.replace("def test_forward", "def test_back"), encoding="utf-8")
    change = types.FileEvent((root / ELM).as_uri(), types.FileChangeType.Changed)
    scanned.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
    try:
        async with asyncio.timeout(10):
            while "test_back" not in str(await _problems(scanned, (root / ELM).as_uri())):
                await asyncio.sleep(0.05)
    finally:
        (root / ELM).write_text(before, encoding="utf-8")


async def test_files_outside_of_checkouts_are_left_alone(scanned, tmp_path):
    uri = (tmp_path / "test_modeling_alone.py").as_uri()
    scanned.open(uri, "class AloneTest:\n    def test_forward(self):\n        pass\n")
    assert await _lenses(scanned, uri) == []
    assert await _problems(scanned, uri) == []


async def test_a_workspace_without_a_checkout_says_what_to_open(tmp_path):
    (tmp_path / "folder").mkdir()
    async with editor(tmp_path / "cache", {"library": [str(tmp_path)]}, folders=[tmp_path / "folder"]) as opened:
        answer = await opened.ask("twinlens/skippedTests", {})
        assert answer.tests == []
        assert answer.note == "Open a transformers checkout to see which of its tests run."
