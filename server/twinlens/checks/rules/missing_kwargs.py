"""missing-kwargs: a captured forward that takes no `**kwargs`."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.modules import FunctionNode
from twinlens.checks.subject import CAPTURE, Subject

CODE = "missing-kwargs"


def _find(subject: Subject) -> Iterator[Finding]:
    for cls, method in subject.captured:
        if method.args.kwarg is None:
            message = f"{cls.name}.{method.name} is decorated with @{CAPTURE} but takes no **kwargs"
            name = Span(
                method.lineno, method.col_offset, method.lineno, method.col_offset + len("def ") + len(method.name)
            )
            yield Finding(CODE, message, name, _fix(method))


def _fix(forward: FunctionNode) -> Fix | None:
    arguments = forward.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *arguments.defaults]
    given += [default for default in arguments.kw_defaults if default is not None]
    given += [arguments.vararg] if arguments.vararg else []
    ends = [(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset) for node in given]
    if not ends:
        return None
    line, column = max(ends)
    return Fix("Add **kwargs", (Edit(Span(line, column, line, column), ", **kwargs"),))


CHECK = Check(
    CODE,
    "A forward decorated with `@capture_outputs` takes no `**kwargs`.",
    """
The flags that ask for outputs (`output_attentions`, `output_hidden_states`) are read by the decorator and passed on to
the forward, which hands them to its layers. A forward without `**kwargs` refuses them: the first call that asks for an
output raises a `TypeError`.
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
    def forward(self, inputs): ...
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
