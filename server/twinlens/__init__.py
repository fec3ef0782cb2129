"""Twinlens: which class exists already, where two forwards part, which tests really run.

`import twinlens` imports nothing heavy: each public name is loaded from its room on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME_OF: dict[str, str] = {
    "OutputRecorder": "twinlens.capture",
    "capture_outputs": "twinlens.capture",
    "merge_with_config_defaults": "twinlens.capture",
    "apply_patches": "twinlens.patching",
    "clear_patch_mapping": "twinlens.patching",
    "get_patch_mapping": "twinlens.patching",
    "patch_output_recorders": "twinlens.patching",
    "register_patch_mapping": "twinlens.patching",
    "unregister_patch_mapping": "twinlens.patching",
    "model_addition_debugger_context": "twinlens.tracing.context",
    "recipe": "twinlens.tracing.recipes",
}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'twinlens' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
