"""The class to inherit from, and the two files as trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from twinlens.source.definitions import read_definitions
from twinlens.source.sanitise import model_prefixes, sanitise

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


class NotInheritableError(Exception):
    """The class cannot be written as a subclass: one sentence that says why."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A class of the library: `relative` is its file below the models folder (`llama/modeling_llama.py`), `source`
    that file's text.
    """

    name: str
    model: str
    relative: str
    source: str

    @property
    def module(self) -> str:
        """As a modular file imports it: `..llama.modeling_llama`."""
        return ".." + self.relative.removesuffix(".py").replace("/", ".")


@dataclass(frozen=True, slots=True)
class ModelingSource:
    """A modeling file as a tree, with what takes its model's name out of its code."""

    tree: cst.Module
    prefixes: tuple[str, ...]
    hints: tuple[str, ...]

    @classmethod
    def read(cls, text: str, hints: Sequence[str]) -> ModelingSource:
        """Raises `NotInheritableError` where `text` does not parse."""
        try:
            tree = cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            raise NotInheritableError(f"{hints[-1]} does not parse at line {error.raw_line}.") from error
        names = [node.name.value for node in tree.body if isinstance(node, cst.ClassDef)]
        return cls(tree, model_prefixes(names, hints), tuple(hints))

    def definitions(self) -> dict[str, cst.ClassDef | cst.FunctionDef]:
        """The module-level classes and functions by name."""
        return {node.name.value: node for node in self.tree.body if isinstance(node, (cst.ClassDef, cst.FunctionDef))}

    def class_named(self, name: str) -> cst.ClassDef:
        found = self.definitions().get(name)
        if not isinstance(found, cst.ClassDef):
            raise NotInheritableError(f"{name} is no class at the top level of {self.hints[-1]}.")
        return found

    def sanitised(self, node: cst.CSTNode) -> str:
        """The node's code without docstrings, comments and the model's name; two equal ones do the same."""
        code = self.tree.code_for_node(node)
        if isinstance(node, (cst.ClassDef, cst.FunctionDef)):
            bare = self.tree.code_for_node(node.with_changes(decorators=(), leading_lines=()))
            code = read_definitions(bare)[0].code
        else:
            code = "\n".join(filter(None, (line.split("#")[0].rstrip() for line in code.splitlines())))
        return sanitise(code, self.prefixes, self.hints).strip()

    def decorators(self, node: cst.ClassDef | cst.FunctionDef) -> list[str]:
        return [self.sanitised(decorator) for decorator in node.decorators]
