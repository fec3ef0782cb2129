"""decorator-order: `@capture_outputs` above `@merge_with_config_defaults`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.subject import CAPTURE, MERGE, Subject, decorator, decorators

CODE = "decorator-order"


def _find(subject: Subject) -> Iterator[Finding]:
    for _, forward in subject.captured:
        names = decorators(forward)
        if MERGE not in names or names.index(MERGE) < names.index(CAPTURE):
            continue
        first, second = decorator(forward, CAPTURE), decorator(forward, MERGE)
        text = subject.module.text
        swapped = (
            Edit(Span.of(first), ast.get_source_segment(text, second) or ast.unparse(second)),
            Edit(Span.of(second), ast.get_source_segment(text, first) or ast.unparse(first)),
        )
        message = f"@{MERGE} belongs above @{CAPTURE}"
        yield Finding(CODE, message, Span.of(first), Fix("Swap the decorators", swapped))


CHECK = Check(
    CODE,
    "The two decorators stand in the wrong order: `@merge_with_config_defaults` belongs above `@capture_outputs`.",
    """
The outer decorator sees the call first. `@merge_with_config_defaults` settles the arguments that the configuration
decides, and `@capture_outputs` must run closest to the forward, so that everything that it collects comes from the call
as settled, and what it returns, perhaps a plain tuple, is returned as it is.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    @capture_outputs
    @merge_with_config_defaults
    def forward(self, inputs, past_key_values=None, use_cache=None, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layer = MyLayer()

    @merge_with_config_defaults
    @capture_outputs
    def forward(self, inputs, past_key_values=None, use_cache=None, **kwargs): ...
""",
    _find,
)
