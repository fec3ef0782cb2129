"""patch-signature: a replacement that does not accept what the callers of the replaced class pass."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.checks.calls import Calling, constructions, forward_calls, refusal
from twinlens.checks.check import Check
from twinlens.checks.finding import Finding, Span
from twinlens.checks.modules import Class
from twinlens.checks.patches import PatchEntry, matches, registrations, replacement_class
from twinlens.checks.subject import Subject

CODE = "patch-signature"
# A wide pattern is looked at in so many of its classes: the first that fails is told.
_LOOKED_AT = 25


def _find(subject: Subject) -> Iterator[Finding]:
    for registration in registrations(subject.module):
        for entry in registration.entries:
            replacement = replacement_class(subject, entry)
            if replacement is None or not subject.ancestry(replacement).complete:
                continue
            message = next(_mistakes(subject, entry, replacement), None)
            if message is not None:
                yield Finding(CODE, message, Span.of(entry.replacement))


def _mistakes(subject: Subject, entry: PatchEntry, replacement: Class) -> Iterator[str]:
    found = matches(subject, entry.key)
    for name in found.names[:_LOOKED_AT] if found else ():
        replaced = subject.module.classes.get(name) or subject.assembly.world.library_class(name)
        if replaced is None or replaced is replacement:
            continue
        calls: tuple[tuple[str, Iterator[Calling]], ...] = (
            ("__init__", constructions(replaced)),
            ("forward", forward_calls(subject.assembly, replaced)),
        )
        for method, callings in calls:
            yield from _refused(subject, replacement, replaced, method, callings)


def _refused(
    subject: Subject, replacement: Class, replaced: Class, method: str, callings: Iterator[Calling]
) -> Iterator[str]:
    found = subject.ancestry(replacement).method(method)
    for calling in callings:
        call = calling.call
        if found is not None:
            reason = refusal(found[1], call)
        else:
            reason = "takes no arguments" if method == "__init__" and (call.args or call.keywords) else None
        if reason is not None:
            yield (
                f"{replacement.name}.{method} {reason}: {replaced.name}, which it replaces, "
                f"is called so at {calling.place}"
            )


CHECK = Check(
    CODE,
    "A replacement's `__init__` or `forward` does not accept what the callers of the replaced class pass.",
    """
The model's own code goes on calling the class as before: it builds it with the arguments of the original's `__init__`,
and calls its `forward` with the original's. What the replacement does not take is a `TypeError`, when the model is
built, or when it first runs.
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, config):
        super().__init__()

    def forward(self, hidden_states, **kwargs): ...


register_patch_mapping({"LlamaAttention": FusedAttention})
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()

    def forward(self, hidden_states, **kwargs): ...


register_patch_mapping({"LlamaAttention": FusedAttention})
""",
    _find,
)
