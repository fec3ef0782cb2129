"""unknown-layer-name: a recorder's `layer_name` is no attribute of the model or of what it is built from."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.declarations import Declaration
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.modules import Class
from twinlens.checks.subject import Subject

CODE = "unknown-layer-name"
_ALIKE = 0.75


def _find(subject: Subject) -> Iterator[Finding]:
    if subject.is_modular:
        return
    for declaration in subject.declarations:
        names = _names(subject, declaration) if any(entry.layer_name for entry in declaration.entries) else None
        if not names:
            continue
        for entry in declaration.entries:
            segments = [part for part in (entry.layer_name or "").strip(".").split(".") if part and not part.isdigit()]
            unknown = next((segment for segment in segments if segment not in names), None)
            if unknown is not None and entry.layer_name_node is not None:
                yield _finding(unknown, entry.layer_name_node, sorted(names))


def _finding(unknown: str, node: ast.expr, names: list[str]) -> Finding:
    message = f"no module of the models that follow this declaration is named {unknown!r}"
    near = difflib.get_close_matches(unknown, names, n=1, cutoff=_ALIKE)
    longer = [name for name in names if unknown in name.split("_")]
    near = near or (longer if len(longer) == 1 else [])
    if not near:
        return Finding(CODE, message, Span.of(node))
    text = ast.literal_eval(node).replace(unknown, near[0])
    fix = Fix(f"Change it to {text!r}", (Edit(Span.of(node), f'"{text}"'),))
    return Finding(CODE, f"{message}: did you mean {near[0]!r}?", Span.of(node), fix)


def _names(subject: Subject, declaration: Declaration) -> set[str] | None:
    """The names of all modules in the models that follow `declaration`; None where some cannot be told."""
    names: set[str] = set()
    users = [cls for cls in subject.users(declaration) if subject.is_captured(cls)]
    contained = [*users, *(holder for holder in subject.module.classes.values() if _holds(subject, holder, users))]
    for model in contained:
        for place in subject.assembly.places(model):
            family = subject.ancestry(place.cls)
            parts = subject.assembly.parts(place.cls)
            if not family.complete or any(part.opaque for part in parts):
                return None
            names.update(segment for part in parts for segment in part.path.split("."))
            if any("{i}" in segment and segment != "{i}" for segment in place.path.split(".")):
                return None
    return names if users else None


def _holds(subject: Subject, holder: Class, users: list[Class]) -> bool:
    """Whether a model of `users` is a part of `holder`: a layer name may be that of the model in its parent."""
    return any(cls in users for part in subject.assembly.parts(holder) for cls in part.classes)


CHECK = Check(
    CODE,
    "A recorder's `layer_name` names no module of the model.",
    """
`layer_name` keeps only the modules whose path bears the name as a whole segment: `"attn"` does not match `self_attn`.
With a name that no attribute bears nothing is recorded, and the field of the output is an empty tuple.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class MyAttention(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"attentions": OutputRecorder(MyAttention, index=1, layer_name="attn")}

    def __init__(self, config):
        super().__init__(config)
        self.self_attn = MyAttention()
        self.cross_attn = MyAttention()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class MyAttention(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"attentions": OutputRecorder(MyAttention, index=1, layer_name="self_attn")}

    def __init__(self, config):
        super().__init__(config)
        self.self_attn = MyAttention()
        self.cross_attn = MyAttention()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    _find,
)
