"""no-cache: `@merge_with_config_defaults` on a model in which it has nothing to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.modules import Class, FunctionNode
from twinlens.checks.subject import MERGE, Subject, decorator

CODE = "no-cache"
# What the decorator resolves, and what says that a model has a cache.
_RESOLVED = frozenset(
    {
        "use_cache",
        "past_key_values",
        "past_key_value",
        "cache",
        "cache_position",
        "vision_feature_layer",
        "vision_feature_select_strategy",
        "vision_aspect_ratio",
    }
)


def _find(subject: Subject) -> Iterator[Finding]:
    if subject.is_modular:
        return
    for cls, forward in subject.merged:
        if not _may_need_it(subject, cls, forward):
            node = decorator(forward, MERGE)
            message = f"{cls.name} has no cache, so @{MERGE} resolves nothing for it"
            fix = Fix(f"Remove @{MERGE}", (_without_line(node),))
            yield Finding(CODE, message, Span.of(node), fix)


def _without_line(node: ast.expr) -> Edit:
    return Edit(Span(node.lineno, 0, (node.end_lineno or node.lineno) + 1, 0), "")


def _may_need_it(subject: Subject, cls: Class, forward: FunctionNode) -> bool:
    """Whether the model may have a cache, hold one that has, or mask its attention, for which `is_causal` is set."""
    family = subject.ancestry(cls)
    if not family.complete or _names(forward) & _RESOLVED:
        return True
    for place in subject.assembly.places(cls):
        for part in subject.assembly.parts(place.cls):
            if part.opaque or any(subject.ancestry(held).is_model for held in part.classes):
                return True
        for owner in subject.ancestry(place.cls).classes:
            names = _names(owner.node)
            if names & _RESOLVED or any(_makes_a_mask(name) for name in names):
                return True
    return False


def _makes_a_mask(name: str) -> bool:
    return "mask" in name and name.startswith(("create_", "_create_", "get_", "_get_", "_update_", "_prepare_"))


def _names(node: ast.AST) -> set[str]:
    """Every name, attribute, parameter and keyword in `node`."""
    found: set[str] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            found.add(child.id)
        elif isinstance(child, ast.Attribute):
            found.add(child.attr)
        elif isinstance(child, (ast.arg, ast.keyword)) and child.arg:
            found.add(child.arg)
    return found


CHECK = Check(
    CODE,
    "`@merge_with_config_defaults` decorates the forward of a model without a cache.",
    """
The decorator resolves `use_cache` and a few arguments of vision towers from the configuration. On a model that has none
of them it costs a little on every call and tells the reader that there is a cache. A model that builds its attention
mask from the configuration is not reported: there the decorator also passes on `is_causal`.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import capture_outputs


class MyBlock(nn.Module): ...


class MyVisionModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyBlock}

    def __init__(self, config):
        super().__init__(config)
        self.block = MyBlock()

    @merge_with_config_defaults
    @capture_outputs
    def forward(self, pixel_values, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyBlock(nn.Module): ...


class MyVisionModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyBlock}

    def __init__(self, config):
        super().__init__(config)
        self.block = MyBlock()

    @capture_outputs
    def forward(self, pixel_values, **kwargs): ...
""",
    _find,
)
