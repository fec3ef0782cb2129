"""The file that is checked, and what checks ask about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from twinlens.checks.assembly import Assembly
from twinlens.checks.classes import Ancestry
from twinlens.checks.declarations import Declaration, declaration_of
from twinlens.checks.modules import Class, FunctionNode, Module
from twinlens.source.definitions import dotted_name

CAPTURE = "capture_outputs"
MERGE = "merge_with_config_defaults"


@dataclass(frozen=True, eq=False)
class Subject:
    """One file. In a modular file classes stand for those that it generates, so what it lacks may yet be there."""

    module: Module
    assembly: Assembly

    @property
    def is_modular(self) -> bool:
        """Whether the file is the source of a generated modeling file."""
        return self.module.path.name.startswith("modular_")

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """The declarations of this file's classes."""
        return tuple(filter(None, map(declaration_of, self.module.classes.values())))

    @cached_property
    def captured(self) -> tuple[tuple[Class, FunctionNode], ...]:
        """The methods of this file, mostly forwards, that are decorated with `capture_outputs`, with their classes."""
        return tuple(self._decorated(CAPTURE))

    @cached_property
    def merged(self) -> tuple[tuple[Class, FunctionNode], ...]:
        """The methods of this file that are decorated with `merge_with_config_defaults`, with their classes."""
        return tuple(self._decorated(MERGE))

    def ancestry(self, cls: Class) -> Ancestry:
        """`cls` and what it inherits from."""
        return self.assembly.ancestry(cls)

    def users(self, declaration: Declaration) -> list[Class]:
        """The classes of this file that follow `declaration`: its owner, and those below that don't declare anew."""
        below = self.module.subclasses(declaration.owner)
        return [declaration.owner, *(cls for cls in below if self.declaration(cls) is declaration.node)]

    def declaration(self, cls: Class) -> ast.expr | None:
        """The value of `_can_record_outputs` that `cls` has, its own or inherited."""
        found = self.ancestry(cls).attribute("_can_record_outputs")
        return found[1] if found else None

    def captured_methods(self, cls: Class) -> list[tuple[Class, FunctionNode]]:
        """The methods that `cls` has, its own or inherited, that are decorated with `capture_outputs`."""
        family = self.ancestry(cls)
        names = {node.name for owner in family.classes for node in owner.methods() if CAPTURE in decorators(node)}
        found = filter(None, map(family.method, sorted(names)))
        return [(owner, node) for owner, node in found if CAPTURE in decorators(node)]

    def is_captured(self, cls: Class) -> bool:
        """Whether a method that `cls` has, its own or inherited, is decorated with `capture_outputs`."""
        return bool(self.captured_methods(cls))

    def _decorated(self, name: str) -> Iterator[tuple[Class, FunctionNode]]:
        for cls in self.module.classes.values():
            for method in cls.methods():
                if name in decorators(method):
                    yield cls, method


def decorators(function: FunctionNode) -> list[str]:
    """The last parts of the decorators' names, from the top."""
    return [dotted_name(node).split(".")[-1] for node in function.decorator_list]


def decorator(function: FunctionNode, name: str) -> ast.expr:
    """The decorator `name` of a function that has it."""
    return function.decorator_list[decorators(function).index(name)]
