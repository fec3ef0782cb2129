"""patch-too-wide: a pattern that matches more than its author can mean."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from twinlens.checks.check import Check
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.patches import PatchEntry, matches, registrations
from twinlens.checks.subject import Subject

CODE = "patch-too-wide"
_SHOWN = 8
_LAST_WORD = re.compile(r"[A-Z][a-z0-9]*$")


def _find(subject: Subject) -> Iterator[Finding]:
    for registration in registrations(subject.module):
        for entry in registration.entries:
            found = matches(subject, entry.key)
            if found is None or found.is_name or len(found.names) < 2:
                continue
            inside = [name for name in found.names if not _reaches_the_end(entry.key, name)]
            if inside and len(inside) < len(found.names):
                message = f"{len(inside)} of them not at the end of the name: {_listed(inside)}"
                yield _finding(subject, entry, f"{len(found.names)} classes, {message}", anchor=True)
            elif len(kinds := _unnamed_kinds(entry.key, found.names)) > 1:
                message = f"{len(found.names)} classes of {len(kinds)} kinds: {_listed(kinds)}"
                yield _finding(subject, entry, message, anchor=False)


def _reaches_the_end(key: str, name: str) -> bool:
    """Whether a match of `key` ends where `name` does: what kind of layer a class is, its name says at the end."""
    return any(match.end() == len(name) for match in re.finditer(key, name))


def _unnamed_kinds(key: str, names: Sequence[str]) -> list[str]:
    """The last words of `names`, unless `key` spells each of them."""
    kinds = sorted({found[0] for name in names if (found := _LAST_WORD.search(name))})
    return [] if all(kind in key for kind in kinds) else kinds


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _finding(subject: Subject, entry: PatchEntry, what: str, anchor: bool) -> Finding:
    span = Span.of(entry.key_node)
    message = f"{entry.key!r} matches {what}"
    source = ast.get_source_segment(subject.module.text, entry.key_node) or ""
    if not anchor or not source.endswith(('"', "'")):
        return Finding(CODE, message, span)
    before_quote = Span(span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
    return Finding(CODE, message, span, Fix("Anchor the pattern at the end", (Edit(before_quote, "$"),)))


CHECK = Check(
    CODE,
    "A pattern matches classes that it cannot be meant for.",
    """
Patterns are tried with `re.search`: without anchors they match anywhere in a name. `.*Attention` is found in
`LlamaAttention`, and also in `Aimv2AttentionPoolingHead` and `DetrMHAttentionMap`; every class that is found is
replaced by the same one, which then fails when it is built, or worse, does not.
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, *args, **kwargs): ...


register_patch_mapping({".*Attention": FusedAttention})
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
