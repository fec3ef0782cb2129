"""Write what transformers' debugger writes, as the forward runs: only a module without submodules has its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from twinlens.tracing.debug_json import Node, file_base, prune_intermediate_layers, write_tree
from twinlens.tracing.debug_values import DebugValues
from twinlens.tracing.metadata import distributed_rank


class DebugTree:
    """Observes a model's calls and writes `<Class>_debug_tree_SUMMARY.json` and `_FULL_TENSORS.json` into `folder`."""

    def __init__(self, folder: Path, root_class: str, *, prune_layers: bool, use_repr: bool) -> None:
        self._folder = folder
        self._root_class = root_class
        self._prune_layers = prune_layers
        self._values = DebugValues(folder, use_repr=use_repr)
        self._stack: list[tuple[Node, str, bool]] = []
        self._numbers: dict[str, int] = {}
        self._forwards: dict[str, int] = {}
        self._is_silent = distributed_rank()[0] != 0

    def enter(self, module: nn.Module, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if self._is_silent:
            return
        node = Node(path, None)
        if not self._stack:
            self._numbers = {}
        number = self._numbers.get(path, 0)
        self._numbers[path] = number + 1
        outermost = self._stack[0][0].module_path if self._stack else path
        name = file_base(path, forward=self._forwards.get(outermost, 0), call=number)
        is_root = path == self._root_class
        self._stack.append((node, name, is_root or next(module.children(), None) is None))
        arguments = {"args": args, "kwargs": kwargs}
        if not is_root:
            arguments = {kind: values for kind, values in arguments.items() if values}
        with torch._C.DisableTorchFunction():
            node.inputs = self._values.serialise(arguments, f"{name}_inputs")

    def leave(self, result: Any) -> None:
        if self._is_silent:
            return
        node, name, has_outputs = self._stack[-1]
        if has_outputs:
            with torch._C.DisableTorchFunction():
                node.outputs = self._values.serialise(result, f"{name}_outputs")
        self._close()

    def fail(self, error: BaseException) -> None:
        if self._is_silent:
            return
        node = self._stack[-1][0]
        if not any(child.error for child in node.children):
            node.error = f"{type(error).__name__}: {error}"
        self._close()

    def _close(self) -> None:
        node = self._stack.pop()[0]
        if self._stack:
            self._stack[-1][0].children.append(node)
            return
        forward = self._forwards.get(node.module_path, 0)
        self._forwards[node.module_path] = forward + 1
        if self._prune_layers:
            prune_intermediate_layers(node)
        write_tree(self._folder, file_base(node.module_path, forward=forward), node.fields(all_outputs=False))
