"""patch-no-match: a key that no class of the library matches."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.patches import matches, registrations
from twinlens.checks.subject import Subject

CODE = "patch-no-match"
_ALIKE = 0.85


def _find(subject: Subject) -> Iterator[Finding]:
    library = subject.assembly.world.library_modules
    for registration in registrations(subject.module) if library else ():
        for entry in registration.entries:
            found = matches(subject, entry.key)
            if found is None or found.names:
                continue
            span = Span.of(entry.key_node)
            if found.others:
                message = f"{entry.key!r} matches only classes that are no modules: {', '.join(found.others[:5])}"
                yield Finding(CODE, message, span)
                continue
            near = difflib.get_close_matches(
                entry.key, [name for name, is_module in library.items() if is_module], 1, _ALIKE
            )
            message = f"no class of the library matches {entry.key!r}"
            if near:
                fix = Fix(f"Change the key to {near[0]!r}", (Edit(span, f'"{near[0]}"'),))
                yield Finding(CODE, f"{message}: did you mean {near[0]!r}?", span, fix)
            else:
                yield Finding(CODE, message, span)


CHECK = Check(
    CODE,
    "A key of `register_patch_mapping` matches no class of the library.",
    """
Registering such a key raises nothing, and nothing is replaced: the model is built from the original layers. It happens
with a misspelt name, and with a class that was renamed in a newer version.
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, *args, **kwargs): ...


register_patch_mapping({"LlamaAtention": FusedAttention})
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, *args, **kwargs): ...


register_patch_mapping({"LlamaAttention": FusedAttention})
""",
    _find,
)
