"""Typing, edit by edit: what is taken up quickly equals what a scan made anew says, down to the lines."""

from __future__ import annotations

import ast
import random
import shutil

import pytest
from twinlens.skips import files as files_module
from twinlens.skips import scan as scan_module
from twinlens.skips.files import Files
from twinlens.skips.lenses import lenses
from twinlens.skips.lints import Linter
from twinlens.skips.scan import scan
from twinlens.skips.states import State
from twinlens.skips.watch import Watch

COMMON = "tests/test_modeling_common.py"
GENERATION = "tests/generation/test_utils.py"
BIRCH = "tests/models/birch/test_modeling_birch.py"
FERN = "tests/models/fern/test_modeling_fern.py"
TYPED_IN_TESTS = (
    "        return",
    '        self.skipTest("typed")',
    "        if not self.has_attentions:\n            return",
    "        for model_class in self.all_generative_model_classes:\n            self.assertTrue(model_class)",
    "        super().test_forward()",
    '    @unittest.skip("typed")',
    "        text = '''\n    def test_in_a_string(self):\n'''",
    "        values = (",
    "    def test_more(self):\n        pass\n",
    "    has_attentions = False",
    "",
)


@pytest.fixture
def root(checkout, tmp_path):
    return shutil.copytree(checkout, tmp_path / "checkout", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def texts(root):
    return {path: (root / path).read_text(encoding="utf-8") for path in (COMMON, GENERATION, BIRCH, FERN)}


def _all_that_is_told(linked, paths):
    return (
        {cls.key: (cls.line, cls.end_line, dict(cls.outcomes)) for cls in linked.scan.classes},
        dict(linked.scan.tests),
        {path: lenses(linked, path) for path in paths},
        {path: Linter(linked).findings(path) for path in paths},
    )


def _edited(text, original, dice):
    lines = text.split("\n")
    tests = [index for index, line in enumerate(lines) if line.startswith("    def test_")]
    what = dice.random()
    if tests and what < 0.6:
        lines.insert(dice.choice(tests) + dice.choice((0, 1, 1, 1, 2)), dice.choice(TYPED_IN_TESTS))
    elif what < 0.75:
        lines.insert(dice.randrange(len(lines)), "        # a note")
    elif what < 0.9:
        del lines[dice.randrange(len(lines))]
    else:
        return original
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(6))
def test_any_edit_is_told_as_a_new_scan_would_tell_it(seed, root, texts):
    dice = random.Random(seed)
    watch, typed = Watch(root), dict(texts)
    watch.update(typed)
    for _ in range(30):
        path = dice.choice(list(typed))
        before, typed[path] = typed[path], _edited(typed[path], texts[path], dice)
        quick = watch.update(typed)
        try:
            ast.parse(typed[path])
        except SyntaxError:
            # Until it parses again, the last text that did is told; a new scan has no such memory to compare with.
            typed[path] = before
            continue
        anew = Files(root)
        for edited, text in typed.items():
            anew.edit(edited, text)
        assert _all_that_is_told(quick, typed) == _all_that_is_told(scan(anew), typed), typed[path]


@pytest.fixture
def parsed(monkeypatch):
    """The texts that were parsed as a whole."""
    whole = []
    parse = files_module.parse
    monkeypatch.setattr(files_module, "parse", lambda content: whole.append(content) or parse(content))
    return whole


@pytest.fixture
def linked_anew(monkeypatch):
    """How often all classes were decided anew."""
    times = []
    link = scan_module.link
    monkeypatch.setattr(scan_module, "link", lambda files, paths: times.append(1) or link(files, paths))
    return times


def test_typing_in_a_common_test_parses_that_test_and_decides_no_other(root, texts, parsed, linked_anew):
    watch = Watch(root)
    watch.update(texts)
    parsed.clear(), linked_anew.clear()
    body = "    def test_save_load(self):\n"
    typed = {**texts, COMMON: texts[COMMON].replace(body, f'{body}        self.skipTest("not today")\n')}
    outcomes = {cls.name: cls.outcomes for cls in watch.update(typed).scan.classes}
    assert outcomes["IvyModelTest"]["test_save_load"].reason == "not today"
    assert outcomes["IvyModelTest"]["test_save_load"].state is State.SKIPPED
    assert parsed == [] and linked_anew == []


def test_an_override_that_calls_a_typed_test_by_super_follows(root, texts, linked_anew):
    watch = Watch(root)
    watch.update(texts)
    linked_anew.clear()
    body = "    def test_forward(self):\n"
    typed = {**texts, COMMON: texts[COMMON].replace(body, f'{body}        self.skipTest("not today")\n', 1)}
    outcomes = {cls.name: cls.outcomes for cls in watch.update(typed).scan.classes}
    assert outcomes["CedarModelTest"]["test_forward"].state is State.SKIPPED
    assert linked_anew == []


def test_a_flag_typed_into_a_mixin_decides_everything_anew(root, texts, linked_anew):
    watch = Watch(root)
    watch.update(texts)
    linked_anew.clear()
    typed = {**texts, COMMON: texts[COMMON].replace("    is_composite = False", "    is_composite = True")}
    outcomes = {cls.name: cls.outcomes for cls in watch.update(typed).scan.classes}
    assert outcomes["IvyModelTest"]["test_composite_attention"].state is State.RUNS
    assert linked_anew == [1]


def test_lines_below_an_edit_move_with_it(root, texts, parsed):
    watch = Watch(root)
    before = watch.update(texts)
    parsed.clear()
    body = "    def test_forward(self):\n"
    typed = {**texts, COMMON: texts[COMMON].replace(body, f"{body}        # one\n        # two\n", 1)}
    after = watch.update(typed)
    assert parsed == []
    was, now = (linked.scan.tests["test_determinism"].line for linked in (before, after))
    assert now == was + 2
    gate = next(cls for cls in after.scan.classes if cls.name == "IvyModelTest").outcomes["test_cpu_offload"]
    assert typed[COMMON].split("\n")[gate.line - 1].strip() == "@require_accelerator"
