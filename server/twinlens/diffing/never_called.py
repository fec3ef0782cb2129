"""Modules that a model has and never calls: their partners, and who should have called them."""

from __future__ import annotations

from collections import Counter

from twinlens.diffing.nodes import Side
from twinlens.diffing.points import Comparison


def partner_of(comparison: Comparison, path: str) -> str | None:
    """The port's module that stands for the reference's `path`: paired with it, or the one that holds the partners of
    what it holds."""
    alignment = comparison.alignment
    pair = alignment.by_reference.get(path)
    if pair is not None:
        return pair.port[0]
    votes: Counter[str] = Counter()
    for inner, pair in alignment.by_reference.items():
        if not inner.startswith(f"{path}."):
            continue
        for other in pair.port:
            depth = inner.count(".") - path.count(".")
            votes[other.rsplit(".", depth)[0]] += 1
    known = [name for name, _count in votes.most_common() if name in comparison.port.modules]
    return known[0] if known else None


def caller_of(side: Side, path: str) -> int | None:
    """The first call of the innermost module around `path` that runs."""
    outer = path.rpartition(".")[0]
    while outer:
        if outer in side.nodes and side.nodes[outer].calls:
            return side.nodes[outer].calls[0]
        outer = outer.rpartition(".")[0]
    return None
