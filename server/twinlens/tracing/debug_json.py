"""The call tree that transformers' debugger writes: nodes, which of them are left out, and the two files.

A node is `{"module_path", "inputs", "outputs", "children"}`; beyond upstream, one that raised has an `error`, and a
module's second call and a model's second forward have files of their own. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinlens.tracing.pretty import pretty_json
from twinlens.tracing.record import FULL_SUFFIX, SUMMARY_SUFFIX

_LAYER = re.compile(r".*\.(\d+)$")


@dataclass(slots=True)
class Node:
    """One call in the tree, as the JSON has it."""

    module_path: str
    inputs: Any
    outputs: Any = None
    children: list[Node] = field(default_factory=list)
    error: str = ""

    def fields(self, *, all_outputs: bool) -> dict[str, Any]:
        """Keys in upstream's order; unless `all_outputs`, a node with children has no outputs."""
        fields: dict[str, Any] = {"module_path": self.module_path, "inputs": self.inputs}
        if all_outputs or not self.children:
            fields["outputs"] = self.outputs
        if self.error:
            fields["error"] = self.error
        if self.children:
            fields["children"] = [child.fields(all_outputs=all_outputs) for child in self.children]
        return fields


def file_base(path: str, *, forward: int, call: int = 0) -> str:
    """What the names of a call's files begin with: upstream's `path` for the first, a number in it for a later one."""
    return f"{path}{f'_forward{forward}' if forward else ''}{f'_call{call}' if call else ''}"


def prune_intermediate_layers(node: Node) -> None:
    """Keep the first and last of the layers among each node's children."""
    layers = [child for child in node.children if _is_layer(child)]
    if len(layers) > 2:
        dropped = {id(layer) for layer in layers[1:-1] if not layer.error}
        node.children = [child for child in node.children if id(child) not in dropped]
    for child in node.children:
        prune_intermediate_layers(child)


def _is_layer(node: Node) -> bool:
    match = _LAYER.match(node.module_path)
    return match is not None and any(f".{match.group(1)}." in child.module_path for child in node.children)


def write_tree(folder: Path, base: str, root: Mapping[str, Any]) -> None:
    """Both files, each written beside its place and then put there."""
    for suffix, tree in ((FULL_SUFFIX, root), (SUMMARY_SUFFIX, _without_values(root))):
        path = folder / f"{base}{suffix}"
        beside = path.with_name(f".{path.name}.tmp")
        beside.write_text(pretty_json(tree), encoding="utf-8")
        beside.replace(path)


def _without_values(node: Mapping[str, Any]) -> dict[str, Any]:
    """Upstream drops every `value` below inputs and outputs, an argument of that name included."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items() if key != "value"}
        if isinstance(value, list):
            return [clean(item) for item in value]
        return value

    return {
        key: [_without_values(child) for child in value]
        if key == "children"
        else clean(value)
        if key in ("inputs", "outputs")
        else value
        for key, value in node.items()
    }
