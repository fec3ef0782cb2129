"""The debugger's two JSON files from a record: for the eye, and for a text diff. Standard library only.

Arguments stand under `kwargs` by their names in the signature, however they were passed. Every module has its outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from twinlens.tracing.debug_json import Node, file_base, prune_intermediate_layers, write_tree
from twinlens.tracing.reading import read_rank
from twinlens.tracing.record import Call, Slot, Tensor, Trace

_STEP = re.compile(r"\[([^\]]+)\]|\.?([^.\[]+)")


def write_summaries(folder: Path, *, prune_layers: bool) -> None:
    """Of each forward of the trace in `folder`, one rank's: `SUMMARY` and `FULL_TENSORS`."""
    for forward, root in enumerate(trees(read_rank(folder))):
        if prune_layers:
            prune_intermediate_layers(root)
        write_tree(folder, file_base(root.module_path, forward=forward), root.fields(all_outputs=True))


def trees(trace: Trace) -> list[Node]:
    """The call tree of each forward; several roots of one (a part of a model) stand under its class."""
    nodes: list[Node] = []
    roots: dict[int, list[Node]] = {}
    for call in trace.calls:
        node = _node(call)
        nodes.append(node)
        siblings = roots.setdefault(call.forward, []) if call.parent is None else nodes[call.parent].children
        siblings.append(node)
    return [
        group[0] if len(group) == 1 else Node(trace.info.part or trace.info.class_name, None, children=group)
        for group in roots.values()
    ]


def _node(call: Call) -> Node:
    error = f"{call.error.type}: {call.error.message}" if call.error else ""
    return Node(
        call.path,
        {"kwargs": _nested(call.inputs)} if call.inputs else {},
        _nested(call.outputs) if call.outputs else None,
        error=error,
    )


def _nested(slots: Iterable[Slot]) -> Any:
    """Slots as the nested lists and dicts that their places describe; one without a place is the whole."""
    root: dict[str, Any] = {}
    for slot in slots:
        value = slot.text if slot.tensor is None else _tensor_fields(slot.tensor)
        steps = [index or name for index, name in _STEP.findall(slot.place)]
        if not steps:
            return value
        branch = root
        for step in steps[:-1]:
            branch = branch.setdefault(step, {})
        branch[steps[-1]] = value
    return _lists(root)


def _lists(branch: Any) -> Any:
    """A dict whose keys are 0, 1, 2 … was a list."""
    if not isinstance(branch, dict) or "shape" in branch:
        return branch
    values = [_lists(value) for value in branch.values()]
    if [*branch] == [str(index) for index in range(len(branch))]:
        return values
    return dict(zip(branch, values, strict=True))


def _tensor_fields(tensor: Tensor) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "shape": f"torch.Size([{', '.join(map(str, tensor.shape))}])",
        "dtype": f"torch.{tensor.dtype}",
    }
    if tensor.data is not None:
        fields["value"] = f"./{tensor.data.file}[{tensor.data.start}:{tensor.data.stop}]"
    statistics = tensor.statistics
    if statistics is not None:
        device = "" if tensor.device == "cpu" else f", device='{tensor.device}'"
        fields |= {name: f"tensor({getattr(statistics, name):.4e}{device})" for name in ("mean", "std", "min", "max")}
        counts = {"nan": statistics.nans, "inf": statistics.positive_infinities + statistics.negative_infinities}
        fields |= {name: count for name, count in counts.items() if count}
    return fields
