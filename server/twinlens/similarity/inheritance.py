"""What is asked of the worker to have a class inherit from one of the library, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ParentClass:
    """A class of the library, as a match names it; `path` is absolute."""

    model: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class InheritRequest:
    """Have the class `name` of the modeling file inherit from `parent`; `modular` is that file's text, if any."""

    text: str
    path: str
    name: str
    model: str
    modular: str | None
    parent: ParentClass


@dataclass(frozen=True, slots=True)
class ModularText:
    """The modular file to write; `notes` are sentences to read before relying on it."""

    path: str
    text: str
    notes: tuple[str, ...]


def question_of(request: InheritRequest, roots: Sequence[Path]) -> dict[str, Any]:
    """`request` as the worker reads it; `roots` are the library's folders."""
    parent = Path(request.parent.path)
    root = next((root for root in roots if parent.is_relative_to(root)), None)
    return {
        "text": request.text,
        "path": request.path,
        "name": request.name,
        "model": request.model,
        "modular": request.modular,
        "parent": request.parent.name,
        "parent_model": request.parent.model,
        "parent_path": request.parent.path,
        "parent_relative": parent.relative_to(root).as_posix() if root else parent.name,
    }


def modular_text(answer: dict[str, Any]) -> ModularText:
    return ModularText(answer["path"], answer["text"], tuple(answer["notes"]))
