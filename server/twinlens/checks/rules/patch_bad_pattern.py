"""patch-bad-pattern: a key that is no regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Finding, Span
from twinlens.checks.patches import registrations
from twinlens.checks.subject import Subject

CODE = "patch-bad-pattern"


def _find(subject: Subject) -> Iterator[Finding]:
    for registration in registrations(subject.module):
        for entry in registration.entries:
            try:
                re.compile(entry.key)
            except re.error as error:
                yield Finding(CODE, f"{entry.key!r} does not compile: {error}", Span.of(entry.key_node))


CHECK = Check(
    CODE,
    "A key of `register_patch_mapping` is no regular expression.",
    """
A key that is not the name of a class is a regular expression, not a shell pattern: `*Attention` has a `*` with nothing
to repeat. transformers writes a line to the log and goes on without it, so nothing is replaced; twinlens raises a
`ValueError`.
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, *args, **kwargs): ...


register_patch_mapping({"*Attention": FusedAttention})
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, *args, **kwargs): ...


register_patch_mapping({".*Attention$": FusedAttention})
""",
    _find,
)
