"""missing-declaration: a forward captures, but nothing says what."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Finding, Span
from twinlens.checks.modules import Class
from twinlens.checks.subject import CAPTURE, Subject, decorator

CODE = "missing-declaration"


def _find(subject: Subject) -> Iterator[Finding]:
    if subject.is_modular:
        return
    for cls, forward in subject.captured:
        declared = subject.declaration(cls)
        is_declared = declared is not None and not (isinstance(declared, ast.Constant) and declared.value is None)
        if not is_declared and subject.ancestry(cls).complete and not _holds_a_model(subject, cls):
            message = f"{cls.name} declares no _can_record_outputs, so @{CAPTURE} collects nothing"
            yield Finding(CODE, message, Span.of(decorator(forward, CAPTURE)))


def _holds_a_model(subject: Subject, cls: Class) -> bool:
    """Whether a model within `cls` may collect what is asked for: then the decorator is there for `return_dict`."""
    return any(
        part.opaque or any(subject.ancestry(held).is_model for held in part.classes)
        for part in subject.assembly.parts(cls)
    )


CHECK = Check(
    CODE,
    "A forward is decorated with `@capture_outputs`, but neither its class nor a base declares `_can_record_outputs`.",
    """
The decorator places hooks by the declaration. Without one `output_hidden_states=True` and `output_attentions=True` are
accepted and do nothing: the fields stay `None`. An empty declaration, `_can_record_outputs = {}`, says that this is
meant.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
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
        self.layer = MyLayer()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    _find,
)
