"""unknown-class: a recorder names a class that the file does not know, or that the model never builds."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from twinlens.checks.check import Check
from twinlens.checks.classes import DECLARATION
from twinlens.checks.declarations import Entry
from twinlens.checks.finding import Edit, Finding, Fix, Span
from twinlens.checks.modules import Class, Function, Value
from twinlens.checks.subject import Subject
from twinlens.source.definitions import dotted_name

CODE = "unknown-class"
_ALIKE = 0.85


def _find(subject: Subject) -> Iterator[Finding]:
    if subject.is_modular:
        return
    for declaration in subject.declarations:
        users = [cls for cls in subject.users(declaration) if subject.is_captured(cls)]
        built = _built(subject, users) if users else None
        for entry in declaration.entries:
            yield from _of_entry(subject, entry, built)


def _of_entry(subject: Subject, entry: Entry, built: dict[str, set[Class]] | None) -> Iterator[Finding]:
    for target in entry.targets:
        name = dotted_name(target)
        meaning = subject.assembly.world.meaning(subject.module, name)
        if meaning is None:
            yield _unbound(subject, name, target)
        elif isinstance(meaning, Class) and built is not None and not _is_built(subject, meaning, built):
            message = f"no model that follows this declaration builds {name}, so nothing is recorded from it"
            yield Finding(CODE, message, Span.of(target))
    name = entry.class_name
    is_class_name = name is not None and not entry.targets and name.isidentifier() and name[:1].isupper()
    if is_class_name and built is not None and not any(cls.name == name for cls in _bases(subject, built)):
        message = f"no model that follows this declaration builds a {name}, so nothing is recorded"
        yield Finding(CODE, message, Span.of(entry.node))


def _unbound(subject: Subject, name: str, target: ast.expr) -> Finding:
    message = f"{name} is neither defined nor imported in this file"
    known = [*subject.module.classes, *subject.module.imports]
    near = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
    if not near:
        return Finding(CODE, message, Span.of(target))
    fix = Fix(f"Change it to {near[0]}", (Edit(Span.of(target), near[0]),))
    return Finding(CODE, f"{message}: did you mean {near[0]}?", Span.of(target), fix)


def _is_built(subject: Subject, target: Class, built: dict[str, set[Class]]) -> bool:
    return any(target in subject.ancestry(cls).classes for classes in built.values() for cls in classes)


def _bases(subject: Subject, built: dict[str, set[Class]]) -> Iterator[Class]:
    for classes in built.values():
        for cls in classes:
            yield from subject.ancestry(cls).classes


def _built(subject: Subject, users: list[Class]) -> dict[str, set[Class]]:
    """The classes that `users` may build, by name: what their code mentions, and what the code of those mentions."""
    found: dict[str, set[Class]] = {}
    waiting: list[Class | Function | Value] = list(users)
    seen: set[Class | Function | Value] = set()
    while waiting:
        source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        if isinstance(source, Class):
            family = subject.ancestry(source)
            if not family.is_module:
                continue
            found.setdefault(source.name, set()).add(source)
            waiting += family.classes[1:]
        for name in _mentioned(source.node):
            meaning = subject.assembly.world.meaning(source.module, name)
            if isinstance(meaning, Class) or (
                isinstance(meaning, (Function, Value)) and meaning.module is source.module
            ):
                waiting.append(meaning)
    return found


def _mentioned(node: ast.AST) -> set[str]:
    """The dotted names in `node` where a class may be built: not in a declaration, an annotation or an isinstance."""
    found: set[str] = set()
    for child in _children(node):
        if isinstance(child, ast.Call) and dotted_name(child.func) in ("isinstance", "issubclass"):
            continue
        if isinstance(child, (ast.Name, ast.Attribute)) and (name := dotted_name(child)):
            found.add(name)
        found |= _mentioned(child)
    return found


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(isinstance(target, ast.Name) and target.id == DECLARATION for target in targets) and node.value:
            yield node.value
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from node.body
        yield from (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
    elif isinstance(node, ast.ClassDef):
        yield from node.body
    else:
        yield from ast.iter_child_nodes(node)


CHECK = Check(
    CODE,
    "A class named in `_can_record_outputs` is neither defined nor imported in the file, or no model builds one.",
    """
Hooks are placed on the modules that are instances of the class. Where there are none, `output_<key>=True` raises
nothing and records nothing: the field of the output is an empty tuple or `None`. It happens after a rename, or after
the layers were replaced by a class that does not inherit from the one declared.
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyLayer(nn.Module): ...


class MyFusedLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([MyFusedLayer() for _ in range(config.num_hidden_layers)])

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    """
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import capture_outputs


class MyFusedLayer(nn.Module): ...


class MyModel(PreTrainedModel):
    _can_record_outputs = {"hidden_states": MyFusedLayer}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([MyFusedLayer() for _ in range(config.num_hidden_layers)])

    @capture_outputs
    def forward(self, inputs, **kwargs): ...
""",
    _find,
)
