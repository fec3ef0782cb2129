"""The registry's functions: as documented for transformers, tested against both."""

from __future__ import annotations

import threading

import pytest

from .conftest import Fused, Other


def test_registered_mappings_add_up_and_can_be_read(registry):
    registry.register_patch_mapping({"A": Fused})
    registry.register_patch_mapping({"B": Other})
    assert registry.get_patch_mapping() == {"A": Fused, "B": Other}


def test_what_is_read_is_a_copy(registry):
    registry.register_patch_mapping({"A": Fused})
    registry.get_patch_mapping().clear()
    assert registry.get_patch_mapping() == {"A": Fused}


def test_a_key_is_registered_once_unless_it_is_overwritten(registry):
    registry.register_patch_mapping({"A": Fused})
    with pytest.raises(ValueError, match=r"'A'.*overwrite=True"):
        registry.register_patch_mapping({"A": Other})
    registry.register_patch_mapping({"A": Other}, overwrite=True)
    assert registry.get_patch_mapping() == {"A": Other}


@pytest.mark.parametrize("replacement", [dict, Fused(), "Fused", None])
def test_a_replacement_is_a_module_class(registry, replacement):
    with pytest.raises(TypeError, match="'A'"):
        registry.register_patch_mapping({"A": replacement})
    assert registry.get_patch_mapping() == {}


def test_entries_are_unregistered_by_their_keys(registry):
    registry.register_patch_mapping({"A": Fused, ".*B$": Other})
    registry.unregister_patch_mapping([".*B$"])
    assert registry.get_patch_mapping() == {"A": Fused}


def test_unregistering_what_is_not_there_is_refused(registry):
    with pytest.raises(ValueError, match="'C'"):
        registry.unregister_patch_mapping(["C"])


def test_clearing_forgets_everything(registry):
    registry.register_patch_mapping({"A": Fused})
    registry.clear_patch_mapping()
    assert registry.get_patch_mapping() == {}


def test_a_refused_unregistering_removes_nothing(ours):
    # transformers removes the keys before the missing one.
    ours.register_patch_mapping({"A": Fused, "B": Other})
    with pytest.raises(ValueError, match="'C' is not registered"):
        ours.unregister_patch_mapping(["A", "C", "B"])
    assert ours.get_patch_mapping() == {"A": Fused, "B": Other}


def test_a_refused_registering_adds_nothing(ours):
    # transformers adds the keys before the bad one.
    ours.register_patch_mapping({"B": Other})
    with pytest.raises(ValueError, match="'B' is already registered"):
        ours.register_patch_mapping({"A": Fused, "B": Fused})
    with pytest.raises(TypeError):
        ours.register_patch_mapping({"A": Fused, "D": int})
    assert ours.get_patch_mapping() == {"B": Other}


def test_a_pattern_that_does_not_compile_is_named(ours):
    # transformers writes a line to the log and takes the key as a name.
    with pytest.raises(ValueError, match=r"'\*Attention' does not compile: nothing to repeat"):
        ours.register_patch_mapping({"*Attention": Fused})


def test_keys_given_as_one_string_are_refused(ours):
    ours.register_patch_mapping({"A": Fused})
    with pytest.raises(TypeError, match="give a list"):
        ours.unregister_patch_mapping("A")


def test_a_key_that_is_no_string_is_refused(ours):
    with pytest.raises(TypeError, match="class name or a pattern"):
        ours.register_patch_mapping({Fused: Other})


def test_many_threads_can_register(registry):
    def run(number: int) -> None:
        for place in range(50):
            registry.register_patch_mapping({f"K{number}_{place}": Fused})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.get_patch_mapping()) == 400
