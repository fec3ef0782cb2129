"""Notice the models that are built while a block runs, and patch their output recorders."""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules.module import (
    register_module_forward_pre_hook,
    register_module_module_registration_hook,
)

from twinlens.capture.recorder import declares
from twinlens.patching.recorders import patch_declaration, renew_hooks
from twinlens.patching.registry import PatchMapping


class BuiltModels:
    """The models built while a block runs that declare what can be recorded, until their hooks are in step."""

    def __init__(self, mapping: PatchMapping) -> None:
        self._mapping = mapping
        self._waiting: dict[int, weakref.ref[nn.Module]] = {}

    @contextmanager
    def patched(self) -> Generator[None]:
        """Patch the declaration of each model as soon as it holds a module, and its hooks before it first runs."""
        handles = [
            register_module_module_registration_hook(self._on_registration),
            register_module_forward_pre_hook(self._on_forward),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            self._renew_hooks()

    def _on_registration(self, module: nn.Module, _name: str, child: nn.Module | None) -> None:
        for model in (module, child):
            if model is not None and declares(model) and patch_declaration(model, self._mapping):
                self._waiting[id(model)] = weakref.ref(model)

    def _on_forward(self, _module: nn.Module, _args: Any) -> None:
        if self._waiting:
            self._renew_hooks()

    def _renew_hooks(self) -> None:
        models = [model for reference in self._waiting.values() if (model := reference()) is not None]
        self._waiting.clear()
        inner = {id(module) for model in models for module in model.modules() if module is not model}
        for model in models:
            if id(model) not in inner:
                renew_hooks(model)
