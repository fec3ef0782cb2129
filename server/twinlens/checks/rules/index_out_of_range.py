"""index-out-of-range: a recorder takes an element that its target's forward does not return."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.declarations import Entry
from twinlens.checks.finding import Finding, Span
from twinlens.checks.modules import Class, FunctionNode
from twinlens.checks.subject import Subject
from twinlens.source.definitions import dotted_name

CODE = "index-out-of-range"
_TENSORS = ("torch.Tensor", "Tensor", "torch.FloatTensor")


def _find(subject: Subject) -> Iterator[Finding]:
    for declaration in subject.declarations:
        for entry in declaration.entries:
            for target in entry.targets:
                message = _mistake(subject, entry, target)
                if message:
                    yield Finding(CODE, message, Span.of(entry.index_node or target))


def _mistake(subject: Subject, entry: Entry, target: ast.expr) -> str | None:
    meaning = subject.assembly.world.meaning(subject.module, dotted_name(target))
    if entry.index is None or not isinstance(meaning, Class):
        return None
    forward = subject.ancestry(meaning).method("forward")
    if forward is None:
        return None
    lengths = _lengths(forward[1])
    what = f"{entry.key!r} records element {entry.index} of what {meaning.name} returns"
    if lengths == [0] and entry.index > 0:
        return f"{what}, but its forward returns one tensor: that is recorded instead"
    if lengths and 0 not in lengths and not -max(lengths) <= entry.index < max(lengths):
        return f"{what}, but its forward returns {max(lengths)} of them"
    return None


def _lengths(forward: FunctionNode) -> list[int]:
    """The numbers of elements that the return statements of `forward` return, 0 for one tensor.

    Empty where one of them does not tell.
    """
    returned = [node.value for node in _own_returns(forward) if node.value is not None]
    if not returned:
        return []
    if all(_is_one_tensor(value, forward) for value in returned):
        return [0]
    lengths = [_length(value) for value in returned]
    return sorted(set(filter(None, lengths))) if all(lengths) else []


def _own_returns(function: FunctionNode) -> Iterator[ast.Return]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _length(value: ast.expr) -> int | None:
    if isinstance(value, ast.Tuple) and not any(isinstance(element, ast.Starred) for element in value.elts):
        return len(value.elts)
    if isinstance(value, ast.IfExp):
        branches = [_length(value.body), _length(value.orelse)]
        return max(filter(None, branches)) if all(branches) else None
    return None


def _is_one_tensor(value: ast.expr, forward: FunctionNode) -> bool:
    """Whether `value` is a tensor for sure: the forward says so, and nothing that it returns says otherwise."""
    if forward.returns is None or ast.unparse(forward.returns).strip("\"'") not in _TENSORS:
        return False
    if isinstance(value, ast.Name):
        return not any(isinstance(source, ast.Tuple) for source in _sources(forward, value.id))
    if isinstance(value, ast.Call):
        return "super" not in ast.unparse(value.func)
    return isinstance(value, (ast.BinOp, ast.Subscript)) and not any(
        isinstance(node, ast.Tuple) for node in ast.walk(value) if not isinstance(value, ast.Subscript)
    )


def _sources(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            yield node.value


CHECK = Check(
    CODE,
    "A recorder's index is past what the forward of its class returns.",
    """
A bare class records element 0 for `hidden_states` and element 1 for everything else; `index` says otherwise. Past the
end of the tuple the model fails on the first call that asks for the output. Where the forward returns one tensor the
index is not used at all: attention *outputs* are then returned as if they were attention weights.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class MyAttention(nn.Module):
    def forward(self, states):
        return states, None


class MyModel(PreTrainedModel):
    _can_record_outputs = {"attentions": OutputRecorder(MyAttention, index=2)}

    def __init__(self, config):
        super().__init__(config)
        self.attention = MyAttention()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class MyAttention(nn.Module):
    def forward(self, states):
        return states, None


class MyModel(PreTrainedModel):
    _can_record_outputs = {"attentions": OutputRecorder(MyAttention, index=1)}

    def __init__(self, config):
        super().__init__(config)
        self.attention = MyAttention()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    _find,
)
