"""unknown-key: a key of the declaration is no field of what the forward returns."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.declarations import Declaration
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.modules import Class, FunctionNode
from twinlens.checks.subject import Subject
from twinlens.source.definitions import dotted_name

CODE = "unknown-key"
_ALIKE = 0.85
_USUAL = ("hidden_states", "attentions", "cross_attentions", "router_logits")
_NEARLY_USUAL = 0.9  # of the 40 names in use in transformers, none but these four is so near to one of them


def _find(subject: Subject) -> Iterator[Finding]:
    for declaration in subject.declarations:
        outputs = _outputs(subject, declaration)
        fields = {name for cls in outputs for name in _fields(subject, cls)}
        for key_node in dict.fromkeys(entry.key_node for entry in declaration.entries):
            key = ast.literal_eval(key_node)
            if not outputs:
                near = difflib.get_close_matches(key, _USUAL, n=1, cutoff=_NEARLY_USUAL)
                if near and key not in _USUAL:
                    yield _finding(f"{key!r} is none of the usual outputs", key_node, near)
            elif key not in fields:
                names = sorted(cls.name for cls in outputs)
                message = f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no field {key!r}"
                yield _finding(message, key_node, difflib.get_close_matches(key, sorted(fields), n=1, cutoff=_ALIKE))


def _finding(message: str, key_node: ast.expr, near: list[str]) -> Finding:
    if not near:
        return Finding(CODE, message, Span.of(key_node))
    fix = Fix(f"Rename the key to {near[0]!r}", (Edit(Span.of(key_node), f'"{near[0]}"'),))
    return Finding(CODE, f"{message}: did you mean {near[0]!r}?", Span.of(key_node), fix)


def _outputs(subject: Subject, declaration: Declaration) -> set[Class]:
    """The classes of what the decorated methods of the declaration return; none where one of them is not known."""
    found: set[Class] = set()
    for user in subject.users(declaration):
        for owner, method in subject.captured_methods(user):
            for value in _returned(method):
                cls = _made(subject, owner, value)
                if cls is None:
                    return set()
                found.add(cls)
    return found


def _made(subject: Subject, owner: Class, value: ast.expr) -> Class | None:
    """The class that `value` is a call of, if all of its fields are known."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, (ast.Name, ast.Attribute)):
        return None
    meaning = subject.assembly.world.meaning(owner.module, dotted_name(value.func) or "?")
    if isinstance(meaning, Class) and subject.ancestry(meaning).complete and _fields(subject, meaning):
        return meaning
    return None


def _returned(function: FunctionNode) -> Iterator[ast.expr]:
    """The expressions that `function` returns, a local name replaced by what it is assigned."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            if isinstance(node.value, ast.Name):
                yield from _assignments(function, node.value)
            else:
                yield node.value


def _assignments(function: FunctionNode, name: ast.Name) -> Iterator[ast.expr]:
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ]
    yield from values or [name]


def _fields(subject: Subject, cls: Class) -> set[str]:
    return {
        node.target.id
        for owner in subject.ancestry(cls).classes
        for node in owner.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


CHECK = Check(
    CODE,
    "A key of `_can_record_outputs` is no field of the output class that the forward returns.",
    """
The key is the name of the output's field, and `output_<key>` the flag that asks for it. With a misspelt key the flag
that everybody uses does nothing and the field stays `None`; with a key that the class does not declare, whoever reads
the class cannot know of it, and an output that is a plain dataclass refuses it at run time.

Where what the forward returns cannot be told from its source, only a key that is nearly `hidden_states`, `attentions`,
`cross_attentions` or `router_logits`, and none of them, is pointed out.
""",
    """
from dataclasses import dataclass

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


@dataclass
class MyOutput:
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_state": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    @capture_outputs
    def forward(self, inputs, **kwargs):
        return MyOutput(last_hidden_state=self.layer(inputs))
""",
    """
from dataclasses import dataclass

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


@dataclass
class MyOutput:
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    @capture_outputs
    def forward(self, inputs, **kwargs):
        return MyOutput(last_hidden_state=self.layer(inputs))
""",
    _find,
)
