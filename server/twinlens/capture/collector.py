"""What one forward collects, and where its hooks find it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any


class Selection:
    """The places of `hidden_states` that a caller asked for; negative ones count from the end.

    How many states a forward makes is known only when it is over, so the states that a negative place might mean are
    kept until then, and no more than those.
    """

    def __init__(self, places: Iterable[int]) -> None:
        self.places = frozenset(places)
        self.window = -min(self.places, default=0)

    def keeps(self, place: int, count: int) -> bool:
        """Whether the state at `place` of `count` is asked for."""
        return place in self.places or place - count in self.places


class Collected:
    """What one forward has recorded under one name, in the order of the calls."""

    def __init__(self, selection: Selection | None = None) -> None:
        self.entries: list[Any] = []
        self.selection = selection
        self.empty_calls = 0

    def add(self, entry: Any) -> None:
        """Record `entry`, unless it is None; one that the selection leaves out holds its place with None."""
        if entry is None:
            self.empty_calls += 1
            return
        entries = self.entries
        selection = self.selection
        if selection is None:
            entries.append(entry)
            return
        place = len(entries)
        entries.append(entry if selection.window > 0 or place in selection.places else None)
        leaving = place - selection.window
        if selection.window > 0 and leaving >= 0 and leaving not in selection.places:
            entries[leaving] = None

    def missed(self) -> list[int]:
        """The places that the selection asks for and that the forward has not made."""
        count = len(self.entries)
        asked = self.selection.places if self.selection is not None else ()
        return sorted(place for place in asked if not -count <= place < count)

    def finish(self) -> tuple[Any, ...]:
        """All entries, None where the selection leaves one out."""
        selection = self.selection
        if selection is None or selection.window <= 0:
            return tuple(self.entries)
        count = len(self.entries)
        return tuple(entry if selection.keeps(place, count) else None for place, entry in enumerate(self.entries))


class Forward(threading.local):
    """The innermost decorated forward that runs in this thread.

    `collected` is None outside of any. A thread-local, not a context variable: `torch.compile` traces the one and
    breaks the graph at the other, and compiled code too keeps one thread's outputs from another's.
    """

    def __init__(self) -> None:
        self.collected: dict[str, Collected] | None = None


running = Forward()
