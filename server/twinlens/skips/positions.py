"""Facts apart from where they stand: moved by some lines, and compared without their lines."""

from __future__ import annotations

from typing import Any

from twinlens.skips import facts

_KINDS = (
    facts.Class,
    facts.Function,
    facts.Value,
    facts.Deleted,
    facts.Decorator,
    facts.Skip,
    facts.Stop,
    facts.Call,
    facts.Work,
    facts.Branch,
    facts.Loop,
)
_FIELDS = {kind: tuple(kind.__dataclass_fields__) for kind in _KINDS}
_LINES = frozenset({"line", "first_line", "end_line"})
_PLACES = _LINES | {"column"}


def moved(fact: Any, by: int) -> Any:
    """A fact, or a tuple of facts, some lines further down."""
    if isinstance(fact, tuple):
        return tuple(moved(item, by) for item in fact)
    fields = _FIELDS.get(type(fact))
    if fields is None:
        return fact
    values = ((name, getattr(fact, name)) for name in fields)
    return type(fact)(*(value + by if name in _LINES else moved(value, by) for name, value in values))


def same_elsewhere(one: Any, other: Any, lines: dict[int, int]) -> bool:
    """Whether two facts differ in nothing but where they stand; notes in `lines` where each line of the first went."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(same_elsewhere(a, b, lines) for a, b in zip(one, other, strict=True))
    fields = _FIELDS.get(type(one))
    if fields is None or type(one) is not type(other):
        return one == other
    for name in fields:
        a, b = getattr(one, name), getattr(other, name)
        if name in _LINES:
            lines[a] = b
        elif name not in _PLACES and not same_elsewhere(a, b, lines):
            return False
    return True
