"""Replace layer classes by a registry, and keep the output recorders in step."""

from __future__ import annotations

from twinlens.patching.recorders import patch_output_recorders
from twinlens.patching.registry import (
    clear_patch_mapping,
    get_patch_mapping,
    register_patch_mapping,
    unregister_patch_mapping,
)
from twinlens.patching.substitution import apply_patches

__all__ = [
    "apply_patches",
    "clear_patch_mapping",
    "get_patch_mapping",
    "patch_output_recorders",
    "register_patch_mapping",
    "unregister_patch_mapping",
]
