"""Reasons grouped by likeness: what many models say in slightly different words counts as one reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = re.compile(r"[a-z_]+")
_NAME = re.compile(r"\{[^}]*\}|\b[A-Za-z]*[A-Z0-9][A-Z0-9a-z]*[A-Z0-9][A-Za-z0-9]*\b|\d+")
_GRAMMAR = frozenset(
    {"a", "an", "and", "are", "as", "for", "in", "is", "it", "of", "that", "the", "this", "to", "with"}
)
_HAVING = frozenset({"do", "does", "has", "have", "model", "support", "supported", "use", "used"})
_FILLERS = _GRAMMAR | _HAVING
_ALIKE = 0.6


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Models that give like reasons; `reason` is the wording that most of them use."""

    reason: str
    models: tuple[str, ...]


def group_reasons(given: Iterable[tuple[str, str]]) -> tuple[ReasonGroup, ...]:
    """Groups of (model, reason) pairs, the largest first; an empty reason is a group of its own."""
    groups: list[tuple[frozenset[str], list[tuple[str, str]]]] = []
    for model, reason in given:
        words = _words(reason, model)
        for core, members in groups:
            if _alike(core, words):
                members.append((model, reason))
                break
        else:
            groups.append((words, [(model, reason)]))
    found = (_group(members) for _, members in groups)
    return tuple(sorted(found, key=lambda group: (-len(group.models), group.reason)))


def _group(members: list[tuple[str, str]]) -> ReasonGroup:
    reasons = [reason for _, reason in members]
    return ReasonGroup(max(reasons, key=reasons.count), tuple(dict.fromkeys(model for model, _ in members)))


def _words(reason: str, model: str) -> frozenset[str]:
    """What a reason is about: its words without names of classes and models, numbers and fillers."""
    plain = _NAME.sub(" ", reason).lower().replace("n't", " not").replace(" no ", " not ")
    own = {*model.split("_"), model, model.replace("_", "")}
    words = {word if len(word) < 4 else word.removesuffix("s") for word in _WORD.findall(plain)}
    return frozenset(words - _FILLERS - own)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if not one or not other:
        return one == other
    return len(one & other) / len(one | other) >= _ALIKE
