"""The modules of one trace as alignment sees them: what each is called, does, holds and is surrounded by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from twinlens.diffing.flow import Flow, flow_of
from twinlens.diffing.load import LoadedTrace
from twinlens.diffing.names import canonical_paths, kind_of
from twinlens.diffing.values import Values
from twinlens.tracing.record import Call, Module, Parameter, Trace


@dataclass(frozen=True, slots=True)
class Node:
    """One module (or tapped function) of a trace, called or not."""

    path: str
    class_name: str
    kind: str
    parent: str | None
    """The path of the module that calls it first; for one that is never called, the one that it hangs in."""
    calls: tuple[int, ...]
    parameters: tuple[Parameter, ...]
    shape_in: tuple[int, ...]
    """Of the first call's first floating input; () where there is none."""
    shape_out: tuple[int, ...]
    is_function: bool = False


class Side:
    """One trace with its indexes. Nothing here changes once it is made."""

    def __init__(self, loaded: LoadedTrace) -> None:
        self.loaded = loaded
        self.trace: Trace = loaded.trace
        self.values: Values = loaded.values
        self.modules: Mapping[str, Module] = {module.path: module for module in loaded.trace.modules}
        self.nodes: Mapping[str, Node] = _nodes(loaded.trace, self.modules)
        self.children: Mapping[str | None, list[str]] = _children(self.nodes.values())

    @cached_property
    def flow(self) -> Flow:
        return flow_of(self.trace)

    @cached_property
    def canonical(self) -> Mapping[str, str]:
        """By path: it in words that both code bases share; of a model's root, empty."""
        return canonical_paths(self.nodes)

    @property
    def root(self) -> str:
        return self.trace.info.class_name

    def module_of(self, path: str) -> Module | None:
        return self.modules.get(path)

    def node_of(self, call: Call | int) -> Node:
        return self.nodes[(self.trace.calls[call] if isinstance(call, int) else call).path]

    def resolve(self, path: str) -> str | None:
        """The node that `path` names, with or without the root class before it."""
        return next((name for name in (path, f"{self.root}.{path}") if name in self.nodes), None)


def _nodes(trace: Trace, modules: Mapping[str, Module]) -> dict[str, Node]:
    calls: dict[str, list[Call]] = {}
    for call in trace.calls:
        calls.setdefault(call.path, []).append(call)
    owned: dict[str, list[Parameter]] = {}
    for parameter in trace.parameters:
        for name in (parameter.name, *parameter.aliases):
            owned.setdefault(name.rpartition(".")[0], []).append(parameter)
    paths = list(dict.fromkeys((*calls, *(path for path in owned if path in modules))))
    kinds: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    for path in paths:
        own = calls.get(path, ())
        module = modules.get(path)
        class_name = own[0].class_name if own else module.class_name if module else ""
        nodes[path] = Node(
            path=path,
            class_name=class_name,
            kind=class_name if own and own[0].is_function else _kind(class_name, path, kinds),
            parent=_parent(trace, own[0] if own else None, path, paths_set=calls.keys()),
            calls=tuple(call.index for call in own),
            parameters=tuple(owned.get(path, ())),
            shape_in=_first_shape(own[0].inputs) if own else (),
            shape_out=_first_shape(own[0].outputs) if own else (),
            is_function=bool(own) and own[0].is_function,
        )
    return nodes


def _kind(class_name: str, path: str, known: dict[str, str]) -> str:
    """From the class; a trace that names no classes has the path's last word for one."""
    if class_name not in known:
        known[class_name] = kind_of(class_name, next(iter(canonical_paths([path]).values())))
    return known[class_name]


def _parent(trace: Trace, first: Call | None, path: str, paths_set: Iterable[str]) -> str | None:
    if first is not None:
        return None if first.parent is None else trace.calls[first.parent].path
    outer = path.rpartition(".")[0]
    while outer and outer not in paths_set:
        outer = outer.rpartition(".")[0]
    return outer or None


def _first_shape(slots: tuple) -> tuple[int, ...]:
    for slot in slots:
        if slot.tensor is not None and slot.tensor.dtype.startswith(("float", "bfloat", "complex")):
            return slot.tensor.shape
    return ()


def _children(nodes: Iterable[Node]) -> dict[str | None, list[str]]:
    """By parent: its nodes in the order of their first calls, those that are never called last."""
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    return {
        parent: [node.path for node in sorted(group, key=lambda node: node.calls[0] if node.calls else 1 << 60)]
        for parent, group in children.items()
    }
