"""Facts about a class that take its bases into account."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from twinlens.checks.modules import Class, External, FunctionNode
from twinlens.checks.world import KNOWN_MODULES, World
from twinlens.source.definitions import dotted_name

MODULE = "torch.nn.Module"
DECLARATION = "_can_record_outputs"
_WITHOUT_MEMBERS = ("builtins.", "typing.", "typing_extensions.", "abc.", "collections.", "enum.", "dataclasses.")


@dataclass(frozen=True, slots=True)
class Ancestry:
    """A class and its bases, nearest first. `unread` are the bases whose source is not at hand."""

    classes: tuple[Class, ...]
    unread: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing that matters here can be inherited from an unread base."""
        return all(_is_harmless(name) for name in self.unread)

    @property
    def is_module(self) -> bool:
        """Whether it is an `nn.Module` for sure."""
        return any(name.startswith("torch.nn.") or name.split(".")[-1] in KNOWN_MODULES for name in self.unread)

    @property
    def is_model(self) -> bool:
        """Whether it is a transformers model, or declares on its own."""
        names = [cls.name for cls in self.classes] + [name.split(".")[-1] for name in self.unread]
        return "PreTrainedModel" in names or any(cls.attribute(DECLARATION) is not None for cls in self.classes)

    def method(self, name: str) -> tuple[Class, FunctionNode] | None:
        """The nearest method `name`, with the class that defines it."""
        for cls in self.classes:
            node = cls.method(name)
            if node is not None:
                return cls, node
        return None

    def attribute(self, name: str) -> tuple[Class, ast.expr] | None:
        """The nearest value that a class body assigns to `name`."""
        for cls in self.classes:
            value = cls.attribute(name)
            if value is not None:
                return cls, value
        return None


def ancestry(world: World, cls: Class) -> Ancestry:
    """`cls` and all that it inherits from, as far as the source is at hand."""
    classes: list[Class] = []
    unread: list[str] = []
    _collect(world, cls, classes, unread)
    return Ancestry(tuple(classes), tuple(dict.fromkeys(unread)))


def _collect(world: World, cls: Class, classes: list[Class], unread: list[str]) -> None:
    if cls in classes:
        return
    classes.append(cls)
    for base in cls.node.bases:
        name = dotted_name(base)
        meaning = world.meaning(cls.module, name) if name else None
        if isinstance(meaning, Class) and meaning.name not in KNOWN_MODULES:
            _collect(world, meaning, classes, unread)
        else:
            dotted = meaning.dotted if isinstance(meaning, External) else name
            unread.append(dotted or ast.unparse(base))


def _is_harmless(name: str) -> bool:
    return name.startswith(("torch.nn.", *_WITHOUT_MEMBERS)) or name.split(".")[-1] in (*KNOWN_MODULES, "object")
