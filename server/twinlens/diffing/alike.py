"""Whether two modules may stand for each other, by what they are and by the sizes that they take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twinlens.diffing.nodes import Node


def unique(nodes: Iterable[Node], key: Callable[[Node], str | None]) -> dict[str, Node]:
    found: dict[str, Node | None] = {}
    for node in nodes:
        name = key(node)
        if name is not None:
            found[name] = None if name in found else node
    return {name: node for name, node in found.items() if node is not None}


def may_be_same(node: Node, other: Node) -> bool:
    """Names alone do not pair a norm with a projection, nor a function with a module."""
    return node.is_function == other.is_function and (not node.kind or not other.kind or node.kind == other.kind)


def compatible(node: Node, other: Node) -> bool:
    """Their outputs may be compared: equal numbers of elements, equal sizes in some order."""
    return same_sizes(node.shape_out, other.shape_out)


def same_sizes(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    if not shape or not other:
        return shape == other
    if sorted(size for size in shape if size > 1) == sorted(size for size in other if size > 1):
        return True
    return shape[-1] == other[-1] and elements(shape) == elements(other)


def elements(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def own_shapes(node: Node) -> str | None:
    """What a module with matrices of its own takes, returns and holds; biases may be missing on one side."""
    held = [parameter.tensor.shape for parameter in node.parameters if len(parameter.tensor.shape) > 1]
    return f"{node.kind} {node.shape_in} {node.shape_out} {held}" if held and node.calls else None


def is_projection(node: Node) -> bool:
    return bool(node.calls) and any(len(parameter.tensor.shape) == 2 for parameter in node.parameters)


def widths_add_up(node: Node, others: list[Node]) -> list[Node] | None:
    """2 or 3 neighbours among `others` that take what `node` takes and together return as wide a tensor."""
    projections = [other for other in others if is_projection(other) and same_sizes(other.shape_in, node.shape_in)]
    for size in (3, 2):
        for start in range(len(projections) - size + 1):
            some = projections[start : start + size]
            if sum(item.shape_out[-1] for item in some) == node.shape_out[-1] and node.shape_out:
                return some
    return None
