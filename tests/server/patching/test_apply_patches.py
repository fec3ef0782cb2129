"""What a block of `apply_patches` replaces, and that it puts everything back."""

from __future__ import annotations

import sys
import threading

import pytest
import torch
from torch import nn

from .conftest import LAYERS, Fused, Other


def test_a_model_built_in_the_block_holds_the_replacement(registry, layers):
    registry.register_patch_mapping({"ProbeAttention": Fused})
    with registry.apply_patches():
        model = layers.ProbeModel()
    assert type(model.attn) is Fused
    assert type(model.mlp) is layers.ProbeMLP
    assert type(layers.ProbeModel().attn) is layers.ProbeAttention


def test_names_mean_the_replacement_in_the_block_only(registry, layers):
    original = layers.ProbeAttention
    registry.register_patch_mapping({"ProbeAttention": Fused})
    with registry.apply_patches():
        assert layers.ProbeAttention is Fused
    assert layers.ProbeAttention is original


def test_a_pattern_replaces_every_class_that_it_is_found_in(registry, layers):
    registry.register_patch_mapping({"^Probe.*MLP$": Other})
    with registry.apply_patches():
        model = layers.ProbeModel()
    assert type(model.mlp) is Other
    assert type(model.attn) is layers.ProbeAttention


def test_a_pattern_without_anchors_matches_anywhere(registry, layers):
    registry.register_patch_mapping({"robeM": Other})
    with registry.apply_patches():
        assert layers.ProbeMLP is Other


def test_an_exact_name_wins_over_a_pattern(registry, layers):
    registry.register_patch_mapping({"Probe(Attention|MLP)": Other, "ProbeAttention": Fused})
    with registry.apply_patches():
        model = layers.ProbeModel()
    assert type(model.attn) is Fused
    assert type(model.mlp) is Other


def test_without_mappings_nothing_is_replaced(registry, layers):
    with registry.apply_patches():
        assert type(layers.ProbeModel().attn) is layers.ProbeAttention


def test_the_name_of_a_class_replaces_that_class_alone(ours, layers):
    # In transformers "ProbeAttention" is also searched for, and found in ProbeAttentionNew.
    original = layers.ProbeAttentionNew
    ours.register_patch_mapping({"ProbeAttention": Fused})
    with ours.apply_patches():
        assert layers.ProbeAttentionNew is original


def test_only_module_classes_are_replaced(ours, layers):
    # transformers replaces every class whose name matches, `Probe` too.
    original = layers.Probe
    ours.register_patch_mapping({"^Prob": Fused})
    with ours.apply_patches():
        assert layers.Probe is original
        assert layers.ProbeMLP is Fused


def test_names_are_put_back_when_the_block_raises(ours, layers):
    # transformers leaves the replacements in place.
    original = layers.ProbeAttention
    ours.register_patch_mapping({"ProbeAttention": Fused})
    with pytest.raises(RuntimeError, match="on purpose"), ours.apply_patches():
        raise RuntimeError("on purpose")
    assert layers.ProbeAttention is original


def test_any_package_is_patched(ours, package):
    # transformers patches modules whose name begins with its own.
    layers = package("elsewhere", layers=LAYERS, model="from elsewhere.layers import ProbeAttention as Attention")
    import elsewhere.model

    ours.register_patch_mapping({"ProbeAttention": Fused})
    with ours.apply_patches():
        assert type(layers.ProbeModel().attn) is Fused
        assert elsewhere.model.Attention is Fused
    assert elsewhere.model.Attention is layers.ProbeAttention


def test_torch_itself_is_patched_by_an_exact_name_only(ours):
    linear, attention = nn.Linear, nn.MultiheadAttention
    ours.register_patch_mapping({"Attention$": Fused})
    with ours.apply_patches():
        assert nn.MultiheadAttention is attention
    ours.register_patch_mapping({"Linear": Other})
    with ours.apply_patches():
        assert nn.Linear is Other
    assert nn.Linear is linear


def test_a_replacement_can_hold_an_original(ours, package):
    layers = package("elsewhere", layers=LAYERS)
    wrapping = package(
        "wrapping",
        parts="""
            from torch import nn
            from elsewhere.layers import ProbeAttention

            class Wrapped(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = ProbeAttention()
        """,
    )
    ours.register_patch_mapping({"ProbeAttention": wrapping.Wrapped})
    with ours.apply_patches():
        model = layers.ProbeModel()
    assert type(model.attn.inner) is layers.ProbeAttention


def test_a_module_imported_in_the_block_is_patched_and_put_back(ours, package):
    # transformers patches what was loaded when the block began.
    package(first="", layers=LAYERS, derived="from transformers_probe.layers import *\nclass Sub(ProbeAttention): pass")
    ours.register_patch_mapping({"ProbeAttention": Fused})
    with ours.apply_patches():
        import transformers_probe.derived as derived
        import transformers_probe.layers as layers

        assert type(layers.ProbeModel().attn) is Fused
        assert derived.ProbeAttention is Fused
        assert layers.ProbeAttentionNew.__name__ == "ProbeAttentionNew"
        assert derived.Sub.__mro__[1].__name__ == "ProbeAttention"
        assert not hasattr(derived.__spec__.loader, "_around")
    assert derived.ProbeAttention is layers.ProbeAttention is derived.Sub.__mro__[1]
    assert not any(type(finder).__module__.startswith("twinlens") for finder in sys.meta_path)


def test_a_lazy_module_does_not_keep_what_it_looked_up_in_the_block(ours, package):
    package("elsewhere", layers=LAYERS)
    lazy = package(
        "lazy",
        front="""
            def __getattr__(name):
                import elsewhere.layers
                globals()[name] = getattr(elsewhere.layers, name)
                return globals()[name]
        """,
    )
    ours.register_patch_mapping({"ProbeAttention": Fused})
    with ours.apply_patches():
        assert lazy.ProbeAttention is Fused
    assert lazy.ProbeAttention.__name__ == "ProbeAttention"


def test_blocks_nest(ours, layers):
    original = layers.ProbeAttention
    ours.register_patch_mapping({"ProbeAttention": Fused})
    with ours.apply_patches():
        ours.register_patch_mapping({"ProbeAttention": Other}, overwrite=True)
        with ours.apply_patches():
            assert layers.ProbeAttention is Other
        assert layers.ProbeAttention is Fused
    assert layers.ProbeAttention is original


def test_overlapping_blocks_of_two_threads_put_the_original_back(ours, layers):
    original = layers.ProbeAttention
    ours.register_patch_mapping({"ProbeAttention": Fused})
    inside, leave = threading.Event(), threading.Event()

    def run() -> None:
        with ours.apply_patches():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=run)
    with ours.apply_patches():
        thread.start()
        inside.wait(10)
    assert layers.ProbeAttention is Fused
    leave.set()
    thread.join()
    assert layers.ProbeAttention is original


def test_what_someone_else_set_in_the_block_is_left(ours, layers, monkeypatch):
    ours.register_patch_mapping({"ProbeAttention": Fused})
    monkeypatch.setattr(layers, "ProbeAttention", layers.ProbeAttention)
    with ours.apply_patches():
        layers.ProbeAttention = Other
    assert layers.ProbeAttention is Other


def test_many_threads_can_build_in_blocks_of_their_own(ours, layers):
    ours.register_patch_mapping({"ProbeAttention": Fused})
    built = []

    def run() -> None:
        for _ in range(10):
            with ours.apply_patches():
                built.append(type(layers.ProbeModel().attn))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(built) == {Fused}
    assert len(built) == 40
    assert type(layers.ProbeModel().attn) is layers.ProbeAttention


def test_a_built_model_runs(registry, layers):
    registry.register_patch_mapping({"ProbeAttention": Fused})
    with registry.apply_patches():
        model = layers.ProbeModel()
    assert torch.equal(model(torch.ones(2)), torch.full((2,), 2.0))
