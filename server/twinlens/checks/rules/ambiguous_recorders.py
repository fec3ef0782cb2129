"""ambiguous-recorders: one class is recorded under two names, and nothing tells its modules apart."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.declarations import Declaration, Entry
from twinlens.checks.finding import Finding, Span
from twinlens.checks.subject import Subject

CODE = "ambiguous-recorders"


def _find(subject: Subject) -> Iterator[Finding]:
    for declaration in subject.declarations:
        yield from _of_declaration(declaration)


def _of_declaration(declaration: Declaration) -> Iterator[Finding]:
    first: dict[tuple[str, int | None, str | None], Entry] = {}
    for entry in declaration.entries:
        if not entry.tells_layer_name or entry.index is None:
            continue
        for name in entry.names or ((entry.class_name,) if entry.class_name else ()):
            earlier = first.setdefault((name, entry.index, entry.layer_name), entry)
            if earlier.key != entry.key:
                message = (
                    f"{name} is recorded as {earlier.key!r} too: both will hold the outputs of all its modules, "
                    "unless layer_name tells them apart"
                )
                yield Finding(CODE, message, Span.of(entry.node))


CHECK = Check(
    CODE,
    "The same class is recorded under two keys, without a `layer_name` that tells its modules apart.",
    """
A recorder takes every module of its class. Where self-attention and cross-attention are of one class, `attentions` and
`cross_attentions` then both hold all of them, in the order in which they ran: twice as many entries as layers, and
every second one of the wrong kind.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyAttention(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"attentions": MyAttention, "cross_attentions": MyAttention}

    def __init__(self, config):
        super().__init__(config)
        self.self_attn = MyAttention()
        self.encoder_attn = MyAttention()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder, capture_outputs


class MyAttention(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {
        "attentions": OutputRecorder(MyAttention, index=1, layer_name="self_attn"),
        "cross_attentions": OutputRecorder(MyAttention, index=1, layer_name="encoder_attn"),
    }

    def __init__(self, config):
        super().__init__(config)
        self.self_attn = MyAttention()
        self.encoder_attn = MyAttention()

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    _find,
)
