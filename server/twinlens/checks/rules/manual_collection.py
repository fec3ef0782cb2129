"""manual-collection: a captured forward that collects by hand, or resolves by hand, what the decorator does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.declarations import declaration_of
from twinlens.checks.finding import Finding, Span
from twinlens.checks.modules import Class, FunctionNode
from twinlens.checks.subject import CAPTURE, Subject

CODE = "manual-collection"


def _find(subject: Subject) -> Iterator[Finding]:
    for cls, forward in subject.captured:
        keys = _declared(subject, cls)
        yield from _resolved_by_hand(forward, [*(f"output_{key}" for key in keys), "return_dict"])
        yield from _collected_by_hand(forward, keys)


def _declared(subject: Subject, cls: Class) -> tuple[str, ...]:
    declaration = next(filter(None, map(declaration_of, subject.ancestry(cls).classes)), None)
    return declaration.keys if declaration else ()


def _resolved_by_hand(forward: FunctionNode, flags: list[str]) -> Iterator[Finding]:
    """A parameter that is resolved against the configuration, or that nothing reads."""
    parameters = {node.arg: node for node in (*forward.args.args, *forward.args.kwonlyargs) if node.arg in flags}
    resolved = [node for node in ast.walk(forward) if _resolved(node) in parameters]
    for node in resolved:
        message = f"@{CAPTURE} resolves {_resolved(node)} already: leave it to **kwargs"
        yield Finding(CODE, message, Span.of(node))  # ty: ignore[invalid-argument-type]
    read = {node.id for node in ast.walk(forward) if isinstance(node, ast.Name)}
    for name, node in parameters.items():
        if name not in read:
            yield Finding(CODE, f"nothing reads {name}: leave it to @{CAPTURE} and **kwargs", Span.of(node))


def _resolved(node: ast.AST) -> str | None:
    """The name in `name = name if name is not None else self.config.name`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.IfExp):
        return node.targets[0].id if "config" in ast.unparse(node.value.orelse) else None
    return None


def _collected_by_hand(forward: FunctionNode, keys: tuple[str, ...]) -> Iterator[Finding]:
    """`all_hidden_states = all_hidden_states + (state,)`, which goes into the output under a key that is declared."""
    collected = dict(_output_fields(forward, keys))
    seen: set[str] = set()
    for node in ast.walk(forward):
        name = _grown(node)
        if name in collected and name not in seen:
            seen.add(name)
            message = f"{name} collects by hand what @{CAPTURE} collects as {collected[name]!r}"
            yield Finding(CODE, message, Span.of(node))  # ty: ignore[invalid-argument-type]


def _output_fields(forward: FunctionNode, keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The local names that the forward hands over as one of `keys`, or collects only where that is asked for."""
    for node in ast.walk(forward):
        if isinstance(node, ast.keyword) and node.arg in keys and isinstance(node.value, ast.Name):
            yield node.value.id, node.arg
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in keys and isinstance(value, ast.Name):
                    yield value.id, str(key.value)


def _grown(node: ast.AST) -> str | None:
    """The name to which the statement adds a tuple of one, or appends."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.Tuple):
        return node.target.id if isinstance(node.target, ast.Name) else None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        target, left = node.targets[0], node.value.left
        if isinstance(target, ast.Name) and isinstance(left, ast.Name) and isinstance(node.value.right, ast.Tuple):
            return target.id if target.id == left.id else None
    return None


CHECK = Check(
    CODE,
    "A forward decorated with `@capture_outputs` collects or resolves by hand what the decorator does.",
    """
The decorator overwrites the field with what its hooks collected, so the tuples built by hand cost time and memory and
are thrown away; where they differ, the code tells the reader something that does not happen. A flag that the forward
names as a parameter of its own and does not use is kept from the layers, which would find it in `**kwargs`.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([MyLayer() for _ in range(2)])

    @capture_outputs
    def forward(self, states, **kwargs):
        all_hidden_states = ()
        for layer in self.layers:
            all_hidden_states = all_hidden_states + (states,)
            states = layer(states)
        return {"last_hidden_state": states, "hidden_states": all_hidden_states}
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([MyLayer() for _ in range(2)])

    @capture_outputs
    def forward(self, states, **kwargs):
        for layer in self.layers:
            states = layer(states)
        return {"last_hidden_state": states}
""",
    _find,
)
