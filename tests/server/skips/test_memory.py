"""What a scan leaves behind for the next one, and when that holds no longer."""

from __future__ import annotations

import shutil

import pytest
from twinlens.skips import files as files_module
from twinlens.skips.files import Files
from twinlens.skips.memory import Memory
from twinlens.skips.results import MODELS_FOLDER
from twinlens.skips.scan import scan
from twinlens.skips.snapshot import load_snapshot, save_snapshot
from twinlens.skips.states import State

BIRCH = "tests/models/birch/test_modeling_birch.py"


@pytest.fixture
def copy(checkout, tmp_path):
    return shutil.copytree(checkout, tmp_path / "checkout", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def _scan_and_store(root, cache):
    memory = Memory(cache, root)
    files = Files(root, memory)
    found = scan(files).scan
    memory.save(set(files.consulted().values()))
    save_snapshot(cache, files, found)
    return found


def _rows(found):
    return {cls.key: dict(cls.outcomes) for cls in found.classes}


def _load(root, cache):
    files = Files(root)
    return load_snapshot(cache, files, files.model_tests(MODELS_FOLDER))


def _parsed_again(root, cache, monkeypatch):
    parsed = []
    parse = files_module.parse
    monkeypatch.setattr(files_module, "parse", lambda content: parsed.append(content) or parse(content))
    scan(Files(root, Memory(cache, root)))
    return len(parsed)


def test_a_stored_scan_is_the_scan_that_was_made(copy, cache):
    made = _scan_and_store(copy, cache)
    loaded = _load(copy, cache)
    assert loaded is not None
    assert _rows(loaded) == _rows(made)
    assert (loaded.models, loaded.tests, loaded.notices) == (made.models, made.tests, made.notices)


def test_a_stored_scan_no_longer_holds_when_a_file_changed(copy, cache):
    _scan_and_store(copy, cache)
    text = (copy / BIRCH).read_text(encoding="utf-8")
    (copy / BIRCH).write_text(text.replace("has_attentions = False", "has_attentions = True"), encoding="utf-8")
    assert _load(copy, cache) is None


def test_a_stored_scan_no_longer_holds_when_a_test_file_was_added_or_a_missing_file_appeared(copy, cache):
    _scan_and_store(copy, cache)
    (copy / "tests/models/aster/test_modeling_aster_two.py").write_text("", encoding="utf-8")
    assert _load(copy, cache) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 1, "files": 3, "consulted": {}}'])
def test_a_damaged_file_counts_as_none_and_is_replaced(damage, copy, cache):
    made = _scan_and_store(copy, cache)
    for stored in cache.iterdir():
        stored.write_bytes(damage)
    assert _load(copy, cache) is None
    assert _rows(_scan_and_store(copy, cache)) == _rows(made)
    assert _load(copy, cache) is not None


def test_only_files_of_new_content_are_parsed_again(copy, cache, monkeypatch):
    _scan_and_store(copy, cache)
    assert _parsed_again(copy, cache, monkeypatch) == 0
    (copy / BIRCH).write_text("x = 1\n" + (copy / BIRCH).read_text(encoding="utf-8"), encoding="utf-8")
    assert _parsed_again(copy, cache, monkeypatch) == 1


def test_an_edited_text_counts_in_place_of_the_file_until_it_is_given_back(copy):
    files = Files(copy)
    edited = (copy / BIRCH).read_text(encoding="utf-8").replace("has_attentions = False", "has_attentions = True")
    assert files.edit(BIRCH, edited) is True
    assert _state(files, "test_attention_outputs") is State.RUNS
    assert files.edit(BIRCH, None) is True
    assert _state(files, "test_attention_outputs") is State.DISABLED


def test_a_text_that_does_not_parse_yet_keeps_what_the_last_one_said(copy):
    files = Files(copy)
    assert _state(files, "test_attention_outputs") is State.DISABLED
    assert files.edit(BIRCH, "class Birch(") is False
    assert _state(files, "test_attention_outputs") is State.DISABLED


def _state(files, test):
    found = {cls.name: cls for cls in scan(files).scan.classes}
    return found["BirchModelTest"].outcomes[test].state
