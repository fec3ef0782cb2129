"""Pair the modules of two traces, in passes, from the surest evidence to the weakest.

Each pair carries the pass that made it. A module may stand for several on the other side (a fused projection).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from twinlens.diffing.alike import compatible, elements, is_projection, may_be_same, own_shapes, unique, widths_add_up
from twinlens.diffing.alike_order import in_order
from twinlens.diffing.alike_parameters import (
    alike_group,
    alike_parameters,
    fingerprints,
    joined_hash,
    neighbours,
    weight_hash,
)
from twinlens.diffing.mapfile import IDENTITY, MapFile, MapPair, Transform, filled, pattern_of
from twinlens.diffing.nodes import Node, Side

How = Literal["map", "path", "name", "parameters", "order", "values"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Modules that stand for each other. One side has one path; the other may have several, in order."""

    reference: tuple[str, ...]
    port: tuple[str, ...]
    how: How
    transform: Transform = IDENTITY

    @property
    def is_group(self) -> bool:
        return len(self.reference) + len(self.port) > 2


@dataclass(frozen=True, slots=True)
class Alignment:
    """All pairs, in the order of the reference's calls; every other node stands alone."""

    pairs: tuple[Pair, ...]
    by_reference: dict[str, Pair]
    by_port: dict[str, Pair]

    def port_of(self, path: str) -> str | None:
        """The one port path that `path` is paired with; of several, the first."""
        pair = self.by_reference.get(path)
        return pair.port[0] if pair else None

    def reference_of(self, path: str) -> str | None:
        pair = self.by_port.get(path)
        return pair.reference[0] if pair else None


def align(reference: Side, port: Side, mapping: MapFile | None = None) -> Alignment:
    """The passes in their order: map file, exact path, shared names, parameters, order of execution, equal values."""
    draft = _Draft(reference, port)
    draft.pair_mapped(mapping or MapFile())
    draft.pair_equal_roots()
    draft.pair_unique("path", lambda side, node: node.path.partition(".")[2] if node.path != side.root else None)
    if not draft.is_open:
        return draft.alignment()
    draft.pair_unique("name", lambda side, node: side.canonical[node.path] or None)
    draft.pair_parameters()
    for _round in range(3):
        before = len(draft.pairs)
        draft.pair_composites()
        draft.pair_order()
        if len(draft.pairs) == before:
            break
    draft.pair_values()
    draft.pair_unique("order", lambda _side, node: own_shapes(node))
    draft.pair_roots()
    return draft.alignment()


@dataclass(slots=True)
class _Draft:
    reference: Side
    port: Side
    pairs: list[Pair] = field(default_factory=list)
    by_reference: dict[str, Pair] = field(default_factory=dict)
    by_port: dict[str, Pair] = field(default_factory=dict)
    apart_reference: set[str] = field(default_factory=set)
    apart_port: set[str] = field(default_factory=set)

    def alignment(self) -> Alignment:
        order = {path: place for place, path in enumerate(self.reference.nodes)}
        return Alignment(
            tuple(sorted(self.pairs, key=lambda pair: order[pair.reference[0]])), self.by_reference, self.by_port
        )

    def add(self, reference: tuple[str, ...], port: tuple[str, ...], how: How, transform: Transform = IDENTITY) -> None:
        pair = Pair(reference, port, how, transform)
        self.pairs.append(pair)
        self.by_reference.update(dict.fromkeys(reference, pair))
        self.by_port.update(dict.fromkeys(port, pair))

    def free_reference(self, path: str) -> bool:
        return path not in self.by_reference and path not in self.apart_reference

    def free_port(self, path: str) -> bool:
        return path not in self.by_port and path not in self.apart_port

    @property
    def is_open(self) -> bool:
        """Whether both sides have nodes that may still be paired."""
        return len(self.by_reference) < len(self.reference.nodes) and len(self.by_port) < len(self.port.nodes)

    def free_nodes(self) -> tuple[list[Node], list[Node]]:
        return (
            [node for path, node in self.reference.nodes.items() if self.free_reference(path)],
            [node for path, node in self.port.nodes.items() if self.free_port(path)],
        )

    # map file

    def pair_mapped(self, mapping: MapFile) -> None:
        for side, patterns, apart in (
            (self.reference, mapping.apart_reference, self.apart_reference),
            (self.port, mapping.apart_port, self.apart_port),
        ):
            for pattern in patterns:
                apart.update(path for path in side.nodes if pattern_of(pattern).fullmatch(path))
        for pair in mapping.pairs:
            self._pair_pattern(pair)

    def _pair_pattern(self, pair: MapPair) -> None:
        first = pattern_of(pair.reference[0])
        for path in list(self.reference.nodes):
            found = first.fullmatch(path)
            if found is None:
                continue
            numbers = {name: number for name, number in found.groupdict().items() if number is not None}
            reference = [self.reference.resolve(filled(item, numbers)) for item in pair.reference]
            port = [self.port.resolve(filled(item, numbers)) for item in pair.port]
            known = [item for item in (*reference, *port) if item is not None]
            if len(known) < len(reference) + len(port):
                continue
            ours, theirs = tuple(known[: len(reference)]), tuple(known[len(reference) :])
            if all(map(self.free_reference, ours)) and all(map(self.free_port, theirs)):
                self.add(ours, theirs, "map", pair.transform)

    # names

    def pair_unique(self, how: How, key: Callable[[Side, Node], str | None]) -> None:
        """Pair nodes whose key no other free node of their side has."""
        ours, theirs = self.free_nodes()
        our_keys = unique(ours, lambda node: key(self.reference, node))
        their_keys = unique(theirs, lambda node: key(self.port, node))
        for name, node in our_keys.items():
            other = their_keys.get(name)
            if other is not None and may_be_same(node, other):
                self.add((node.path,), (other.path,), how)

    # parameters

    def pair_parameters(self) -> None:
        """By fingerprints that only one parameter of each side has; then fused ones, whose hashes add up."""
        ours, theirs = self.free_nodes()
        our_prints, their_prints = fingerprints(ours), fingerprints(theirs)
        votes: Counter[tuple[str, str]] = Counter()
        for values, path in our_prints.items():
            other = their_prints.get(values)
            if path is not None and other is not None:
                votes[path, other] += 1
        for (path, other), _votes in votes.most_common():
            if self.free_reference(path) and self.free_port(other) and self._may_share_parameters(path, other):
                self.add((path,), (other,), "parameters")
        for path, other in alike_parameters(*self.free_nodes()):
            if self.free_reference(path) and self.free_port(other) and self._may_share_parameters(path, other):
                self.add((path,), (other,), "parameters")
        ours, theirs = self.free_nodes()
        self._pair_fused(ours, theirs, lambda one, many: self.add((one,), many, "parameters"))
        ours, theirs = self.free_nodes()
        self._pair_fused(theirs, ours, lambda one, many: self.add(many, (one,), "parameters"))

    def _may_share_parameters(self, path: str, other: str) -> bool:
        """A module that calls others may own a parameter that the other code base keeps elsewhere."""
        if not self.reference.children.get(path) and not self.port.children.get(other):
            return True
        return compatible(self.reference.nodes[path], self.port.nodes[other])

    def _pair_fused(self, ones: list[Node], parts: list[Node], add: Callable[[str, tuple[str, ...]], None]) -> None:
        """Pair each of `ones` with the 2 or 3 neighbours on `side` whose values it holds all."""
        groups = [some for group in neighbours(parts) for size in (2, 3) for some in combinations(group, size)]
        by_hash = {joined: some for some in groups if (joined := joined_hash(some)) is not None}
        used: set[str] = set()
        for node in ones:
            own = weight_hash(node)
            many = by_hash.get(own) if own else None
            if many is None:
                many = alike_group(node, groups)
            if many and used.isdisjoint(item.path for item in many):
                used.update(item.path for item in many)
                add(node.path, tuple(item.path for item in many))

    # modules that call others

    def pair_composites(self) -> None:
        """A module and the innermost one that holds the partners of all that it holds, when that is mutual."""
        ours = leaf_sets(self.reference, lambda path: self.by_reference[path].port if path in self.by_reference else ())
        theirs = leaf_sets(self.port, lambda path: self.by_port[path].reference if path in self.by_port else ())
        for path, partners in sorted(ours.items(), key=lambda item: len(item[1])):
            if not self.free_reference(path) or not partners:
                continue
            for other in self._holders(path, partners, theirs):
                if self.free_port(other) and compatible(self.reference.nodes[path], self.port.nodes[other]):
                    self.add((path,), (other,), "order")
                    break

    def _holders(self, path: str, partners: set[str], theirs: dict[str, set[str]]) -> Iterator[str]:
        """Port modules, innermost first, that hold all of `partners`, and nothing paired outside of `path`."""
        inside = descendants(self.reference, path)
        start = self.port.nodes[next(iter(partners))].parent
        while start is not None:
            held = theirs.get(start, set())
            if not held <= inside:
                return
            if partners <= descendants(self.port, start):
                yield start
            start = self.port.nodes[start].parent

    def _holds_the_same(self, path: str, other: str) -> bool:
        """Whether nothing inside of one is paired with what lies outside of the other."""
        ours, theirs = descendants(self.reference, path), descendants(self.port, other)
        partners = {name for inner in ours if inner in self.by_reference for name in self.by_reference[inner].port}
        backwards = {name for inner in theirs if inner in self.by_port for name in self.by_port[inner].reference}
        return partners <= theirs and backwards <= ours

    # order of execution

    def pair_order(self) -> None:
        """Inside each pair of callers, what is left between two pairs goes by class, shapes and order: first modules
        that call none, however deep they lie, then those that call others."""
        pairs = [pair for pair in self.pairs if not pair.is_group]
        roots = self.reference.root, self.port.root
        scopes = [(pair.reference[0], pair.port[0]) for pair in pairs]
        scopes += [roots] if roots not in scopes else []
        for path, other in sorted(scopes, key=lambda scope: -scope[0].count(".")):
            self._pair_runs(self._loose(self.reference, path), self._loose(self.port, other))
        self.pair_composites()
        for path, other in scopes:
            self._pair_runs(self.reference.children.get(path, []), self.port.children.get(other, []))

    def _loose(self, side: Side, path: str) -> list[str]:
        """What `path` calls, with modules that have no partner replaced by what they call, in order."""
        taken = self.by_reference if side is self.reference else self.by_port
        found: list[str] = []
        for child in side.children.get(path, ()):
            inner = [] if child in taken else self._loose(side, child)
            found += inner or [child]
        return found

    def _pair_runs(self, ours: list[str], theirs: list[str]) -> None:
        for our_run, their_run in self._runs(ours, theirs):
            our_nodes = [self.reference.nodes[name] for name in our_run]
            their_nodes = [self.port.nodes[name] for name in their_run]
            for node, match in in_order(our_nodes, their_nodes):
                is_leaf = not self.reference.children.get(node.path), not self.port.children.get(match.path)
                if is_leaf[0] == is_leaf[1] and self._holds_the_same(node.path, match.path):
                    self.add((node.path,), (match.path,), "order")
            self._pair_joined(
                [node for node in our_nodes if self.free_reference(node.path)],
                [node for node in their_nodes if self.free_port(node.path)],
            )

    def _runs(self, ours: list[str], theirs: list[str]) -> Iterator[tuple[list[str], list[str]]]:
        """What is free on both sides between neighbouring pairs of children."""
        places = {name: place for place, name in enumerate(theirs)}
        start, run = 0, []
        for name in ours:
            pair = self.by_reference.get(name)
            place = places.get(pair.port[0]) if pair else None
            if place is None:
                if self.free_reference(name):
                    run.append(name)
                continue
            if place >= start:
                yield run, [item for item in theirs[start:place] if self.free_port(item)]
                start, run = place + 1, []
        yield run, [item for item in theirs[start:] if self.free_port(item)]

    def _pair_joined(self, ours: list[Node], theirs: list[Node]) -> None:
        """One projection on one side and neighbours on the other whose widths add up to its."""
        for node in [node for node in ours if is_projection(node)]:
            many = widths_add_up(node, [other for other in theirs if self.free_port(other.path)])
            if many:
                self.add((node.path,), tuple(item.path for item in many), "order")
        for node in [node for node in theirs if is_projection(node) and self.free_port(node.path)]:
            many = widths_add_up(node, [other for other in ours if self.free_reference(other.path)])
            if many:
                self.add(tuple(item.path for item in many), (node.path,), "order")

    # values

    def pair_values(self) -> None:
        """By what their first calls returned, where only one free node of each side returned it."""
        ours, theirs = self.free_nodes()
        our_values = unique(ours, lambda node: _output_key(self.reference, node))
        their_values = unique(theirs, lambda node: _output_key(self.port, node))
        for key, node in our_values.items():
            other = their_values.get(key)
            if other is not None and node.is_function == other.is_function:
                self.add((node.path,), (other.path,), "values")

    def pair_equal_roots(self) -> None:
        """Two traces of one class: its paths are what they seem."""
        ours, theirs = self.reference.nodes.get(self.reference.root), self.port.nodes.get(self.port.root)
        if ours is None or theirs is None or ours.path != theirs.path or not compatible(ours, theirs):
            return
        if self.free_reference(ours.path) and self.free_port(theirs.path):
            self.add((ours.path,), (theirs.path,), "path")

    def pair_roots(self) -> None:
        if self.free_reference(self.reference.root) and self.free_port(self.port.root):
            ours, theirs = self.reference.nodes.get(self.reference.root), self.port.nodes.get(self.port.root)
            if ours is not None and theirs is not None and (compatible(ours, theirs) or not self.pairs):
                self.add((ours.path,), (theirs.path,), "order")


def leaf_sets(side: Side, partners: Callable[[str], tuple[str, ...]]) -> dict[str, set[str]]:
    """By module that calls others: the partners of all that is paired inside it."""
    held: dict[str, set[str]] = {}
    for path in side.nodes:
        own = partners(path)
        if not own:
            continue
        parent = side.nodes[path].parent
        while parent is not None and parent in side.nodes:
            held.setdefault(parent, set()).update(own)
            parent = side.nodes[parent].parent
    return held


def descendants(side: Side, path: str) -> set[str]:
    found: set[str] = set()
    open_paths = [path]
    while open_paths:
        for child in side.children.get(open_paths.pop(), ()):
            if child not in found:
                found.add(child)
                open_paths.append(child)
    return found


def _output_key(side: Side, node: Node) -> str | None:
    if not node.calls or not node.shape_out or node.parent is None:
        return None
    for slot in side.trace.calls[node.calls[0]].outputs:
        if slot.tensor is not None and slot.tensor.statistics is not None and elements(slot.tensor.shape) > 1:
            statistics = slot.tensor.statistics
            return f"{elements(slot.tensor.shape)} {statistics.l2:.5g} {statistics.mean:.4g} {statistics.absmax:.5g}"
    return None
