"""Where each tensor of a trace was born: the frame whose code made it, and what that code could see.

A frame is one call. A tensor is seen first either as what a call returns (that call made it) or as what a call is
given (the code around that call made it); everything that the frame was given or had been returned before may have
gone into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from twinlens.tracing.record import Call, Trace


class Birth(NamedTuple):
    """The first sight of a tensor."""

    frame: int | None
    """Index of the call whose own code made it; None for an input of the root."""
    time: int
    call: int
    """The call that returned it (`side` is `outputs`) or was given it (`inputs`)."""
    side: Literal["inputs", "outputs"]
    place: str


@dataclass(frozen=True, slots=True)
class Flow:
    """An index of one trace."""

    trace: Trace
    children: tuple[tuple[int, ...], ...]
    """By call: the calls made inside it, in order."""
    entered: tuple[int, ...]
    """By call: the time at which it was entered; times count enters and leaves from 0."""
    left: tuple[int, ...]
    births: dict[int, Birth]
    """By tensor id."""

    def events(self) -> Iterator[tuple[int, Literal["inputs", "outputs"]]]:
        """Every call as it is entered (`inputs`) and left (`outputs`), in the order of time."""
        return _events(self.trace)

    def call(self, index: int) -> Call:
        return self.trace.calls[index]

    def ancestors(self, index: int) -> Iterator[int]:
        """The calls around `index`, innermost first, without itself."""
        parent = self.trace.calls[index].parent
        while parent is not None:
            yield parent
            parent = self.trace.calls[parent].parent

    def module_frame(self, index: int | None) -> int | None:
        """`index`, or where that is a function, the module that called it."""
        while index is not None and self.trace.calls[index].is_function:
            index = self.trace.calls[index].parent
        return index

    def inside(self, index: int) -> Iterator[int]:
        """Every call made inside `index`, at any depth, in the order of entering."""
        for child in self.children[index]:
            yield child
            yield from self.inside(child)


def flow_of(trace: Trace) -> Flow:
    calls = trace.calls
    children: list[list[int]] = [[] for _ in calls]
    for call in calls:
        if call.parent is not None:
            children[call.parent].append(call.index)
    entered, left = [0] * len(calls), [0] * len(calls)
    births: dict[int, Birth] = {}
    for time, (index, side) in enumerate(_events(trace)):
        call = calls[index]
        if side == "inputs":
            entered[index] = time
            for slot in call.inputs:
                if slot.tensor is not None and slot.tensor.id not in births:
                    births[slot.tensor.id] = Birth(call.parent, time, index, "inputs", slot.place)
        else:
            left[index] = time
            for slot in call.outputs:
                if slot.tensor is not None and slot.tensor.id not in births:
                    births[slot.tensor.id] = Birth(index, time, index, "outputs", slot.place)
    return Flow(trace, tuple(map(tuple, children)), tuple(entered), tuple(left), births)


def _events(trace: Trace) -> Iterator[tuple[int, Literal["inputs", "outputs"]]]:
    """Calls as they are entered and left. Indices grow in the order of entering; a call is left when the next one
    that is entered does not lie inside it."""
    stack: list[int] = []
    for call in trace.calls:
        while stack and stack[-1] != call.parent:
            yield stack.pop(), "outputs"
        yield call.index, "inputs"
        stack.append(call.index)
    while stack:
        yield stack.pop(), "outputs"
