"""The entries of `register_patch_mapping` calls, and the classes that their keys match."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from twinlens.checks.modules import Class, External, Module
from twinlens.checks.subject import Subject
from twinlens.source.definitions import dotted_name

REGISTER = "register_patch_mapping"


@dataclass(frozen=True, slots=True)
class PatchEntry:
    """One key of a mapping that is registered, with the expression of its replacement."""

    key: str
    key_node: ast.Constant
    replacement: ast.expr


@dataclass(frozen=True, slots=True)
class Registration:
    """One call of `register_patch_mapping`."""

    call: ast.Call
    entries: tuple[PatchEntry, ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """The module classes that a key means, by name. `is_name`: the key is the name of one."""

    names: tuple[str, ...]
    is_name: bool
    # Names that match and are no modules: they are not replaced, or should not be.
    others: tuple[str, ...] = ()


def registrations(module: Module) -> Iterator[Registration]:
    """The calls in `module` whose mapping is written out."""
    if REGISTER not in module.text:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and dotted_name(node.func).split(".")[-1] == REGISTER:
            given = node.args[0] if node.args else None
            mapping = next((keyword.value for keyword in node.keywords if keyword.arg == "mapping"), given)
            literal = _literal(module, mapping)
            if literal is not None:
                yield Registration(node, tuple(_entries(literal)))


def _literal(module: Module, mapping: ast.expr | None) -> ast.Dict | None:
    if isinstance(mapping, ast.Dict):
        return mapping
    if not isinstance(mapping, ast.Name):
        return None
    values = [
        node.value
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == mapping.id for target in node.targets)
    ]
    return values[0] if len(values) == 1 and isinstance(values[0], ast.Dict) else None


def _entries(mapping: ast.Dict) -> Iterator[PatchEntry]:
    for key, value in zip(mapping.keys, mapping.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield PatchEntry(key.value, key, value)


def matches(subject: Subject, key: str) -> Matches | None:
    """The classes that `key` means, of the library and, since ours patches any package, of the file itself.

    None where `key` does not compile.
    """
    classes = dict(subject.assembly.world.library_modules)
    if not _is_of_transformers(subject):
        for cls in subject.module.classes.values():
            classes[cls.name] = subject.ancestry(cls).is_module
    if key in classes or (key.isidentifier() and _is_imported(subject, key)):
        return Matches((key,), True)
    try:
        pattern = re.compile(key)
    except re.error:
        return None
    found = sorted(name for name in classes if pattern.search(name))
    return Matches(
        tuple(name for name in found if classes[name]), False, tuple(name for name in found if not classes[name])
    )


def _is_of_transformers(subject: Subject) -> bool:
    imported = subject.module.imports.get(REGISTER)
    return imported is not None and imported.module.split(".")[0] == "transformers"


def _is_imported(subject: Subject, name: str) -> bool:
    return isinstance(subject.assembly.world.meaning(subject.module, name), (Class, External))


def replacement_class(subject: Subject, entry: PatchEntry) -> Class | None:
    """The class that an entry's replacement names, where its source is at hand."""
    if not isinstance(entry.replacement, (ast.Name, ast.Attribute)):
        return None
    meaning = subject.assembly.world.meaning(subject.module, dotted_name(entry.replacement) or "?")
    return meaning if isinstance(meaning, Class) else None
