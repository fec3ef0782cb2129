"""tuple-of-recorders: several recorders in a tuple, where only a list is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.subject import Subject

CODE = "tuple-of-recorders"


def _find(subject: Subject) -> Iterator[Finding]:
    for declaration in subject.declarations:
        for key, value in zip(declaration.node.keys, declaration.node.values, strict=True):
            if isinstance(value, ast.Tuple):
                span = Span.of(value)
                opening = Span(span.line, span.column, span.line, span.column + 1)
                closing = Span(span.end_line, span.end_column - 1, span.end_line, span.end_column)
                fix = Fix("Make it a list", (Edit(opening, "["), Edit(closing, "]")))
                name = ast.unparse(key) if key is not None else "this"
                yield Finding(CODE, f"{name} is a tuple: several recorders are given as a list", span, fix)


CHECK = Check(
    CODE,
    "Several recorders of one output stand in a tuple; only a list is read as several.",
    """
A list holds one recorder a kind of module. A tuple is taken for one recorder: of classes it happens to work in one
implementation, of `OutputRecorder`s it fails on the first call that asks for the output, and replaced classes are not
found in it by `patch_output_recorders`.
""",
    """
from torch import nn
from transformers import PreTrainedModel


class MyEncoderLayer(nn.Module): ...


class MyDecoderLayer(nn.Module): ...


class MyPreTrainedModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": (MyEncoderLayer, MyDecoderLayer)}
""",
    """
from torch import nn
from transformers import PreTrainedModel


class MyEncoderLayer(nn.Module): ...


class MyDecoderLayer(nn.Module): ...


class MyPreTrainedModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": [MyEncoderLayer, MyDecoderLayer]}
""",
    _find,
)
