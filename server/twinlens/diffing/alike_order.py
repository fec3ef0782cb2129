"""Which modules go together by the order in which they run."""

from __future__ import annotations

from twinlens.diffing.alike import compatible, may_be_same, same_sizes, unique
from twinlens.diffing.nodes import Node

_LONGEST_TABLE = 250_000
"""Cells of one table; beyond it only nodes of equal signature are paired."""


def _signature(node: Node) -> tuple[object, ...]:
    return (node.is_function, node.kind or node.class_name, node.shape_in[-1:], node.shape_out[-1:])


def _fit(node: Node, other: Node) -> int:
    """How well two nodes go together: 0 for not at all."""
    if not may_be_same(node, other) or not compatible(node, other):
        return 0
    if node.is_function:
        return 3 if node.class_name == other.class_name else 0
    if not node.calls or not other.calls:
        return 0
    if node.kind:
        return 3 if same_sizes(node.shape_in, other.shape_in) else 0
    same_class = node.class_name == other.class_name
    return (3 if same_class else 1) if same_sizes(node.shape_in, other.shape_in) else 0


def in_order(ours: list[Node], theirs: list[Node]) -> list[tuple[Node, Node]]:
    """The longest common subsequence, each step weighed by `_fit`."""
    if not ours or not theirs:
        return []
    if len(ours) * len(theirs) > _LONGEST_TABLE:
        their_keys = unique(theirs, lambda node: repr(_signature(node)))
        our_keys = unique(ours, lambda node: repr(_signature(node)))
        return [(node, their_keys[key]) for key, node in our_keys.items() if key in their_keys]
    best = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in range(len(ours) - 1, -1, -1):
        for j in range(len(theirs) - 1, -1, -1):
            fit = _fit(ours[i], theirs[j])
            both = best[i + 1][j + 1] + fit if fit else 0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], both)
    found, i, j = [], 0, 0
    while i < len(ours) and j < len(theirs):
        fit = _fit(ours[i], theirs[j])
        if fit and best[i][j] == best[i + 1][j + 1] + fit:
            found.append((ours[i], theirs[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found
