"""patch-not-module: a replacement that is no subclass of `nn.Module`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.finding import Finding, Span
from twinlens.checks.modules import Class, Function, Value
from twinlens.checks.patches import PatchEntry, registrations
from twinlens.checks.subject import Subject
from twinlens.source.definitions import dotted_name

CODE = "patch-not-module"


def _find(subject: Subject) -> Iterator[Finding]:
    for registration in registrations(subject.module):
        for entry in registration.entries:
            what = _mistake(subject, entry)
            if what is not None:
                message = f"the replacement of {entry.key!r} must be an nn.Module subclass: {what}"
                yield Finding(CODE, message, Span.of(entry.replacement))


def _mistake(subject: Subject, entry: PatchEntry) -> str | None:
    node = entry.replacement
    world = subject.assembly.world
    if isinstance(node, (ast.Constant, ast.Lambda, ast.Dict, ast.List, ast.Tuple)):
        return f"{ast.unparse(node)} is no class"
    if isinstance(node, ast.Call):
        made = world.meaning(subject.module, dotted_name(node.func) or "?")
        return f"{ast.unparse(node)} is an instance" if isinstance(made, Class) else None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    name = dotted_name(node)
    meaning = world.meaning(subject.module, name or "?")
    if isinstance(meaning, Function):
        return f"{name} is a function"
    if isinstance(meaning, Value) and isinstance(meaning.node, ast.Constant):
        return f"{name} is {ast.unparse(meaning.node)}"
    if isinstance(meaning, Class):
        family = subject.ancestry(meaning)
        return f"{name} inherits from no module" if family.complete and not family.is_module else None
    return None


CHECK = Check(
    CODE,
    "A replacement in `register_patch_mapping` is no subclass of `nn.Module`.",
    """
Registering it raises a `TypeError`. Give the class itself, not an instance or a function that makes one, and let it
inherit from `nn.Module` or from the class that it replaces.
""",
    """
from transformers.monkey_patching import register_patch_mapping


class FusedAttention:
    def __init__(self, config, layer_idx): ...


register_patch_mapping({"LlamaAttention": FusedAttention})
""",
    """
from torch import nn
from transformers.monkey_patching import register_patch_mapping


class FusedAttention(nn.Module):
    def __init__(self, config, layer_idx): ...


register_patch_mapping({"LlamaAttention": FusedAttention})
""",
    _find,
)
