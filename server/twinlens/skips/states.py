"""What running one test of one class comes to, told from source alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class State(str, Enum):
    """What becomes of one common test in one test class."""

    RUNS = "runs"
    CONDITIONAL = "conditional"
    """It may skip itself; the condition is known only at run time."""
    GATED = "gated"
    """It needs hardware, a package or a switch that the usual run does not have."""
    SKIPPED = "skipped"
    DISABLED = "disabled"
    """A flag of the class makes the test skip itself or do nothing."""
    SHADOWED = "shadowed"
    """The name holds something that is no function, so the test does not exist."""
    EMPTY = "empty"
    """The method does nothing, and passes."""
    VACUOUS = "vacuous"
    """All that it tests is in loops over an empty list of model classes, and it passes."""
    PHANTOM = "phantom"
    """The name is collected and passes, but holds no test."""

    def __str__(self) -> str:
        return self.value


MAY_RUN = (State.RUNS, State.CONDITIONAL, State.GATED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One state with the reason and the line that decides it; `condition` is source text, where there is one."""

    state: State
    reason: str
    path: str
    line: int
    condition: str = ""
    variants: tuple[tuple[str, Outcome], ...] = ()
    """The outcome of each test that `parameterized.expand` makes of this one."""

    @property
    def runs(self) -> bool:
        """Whether the test, or at least one of its variants, tests something in some environment."""
        if self.variants:
            return any(variant.state in MAY_RUN for _, variant in self.variants) or self.state in MAY_RUN
        return self.state in MAY_RUN


_ORDER = {state: position for position, state in enumerate(State)}


def combined(own: Outcome | None, variants: tuple[tuple[str, Outcome], ...]) -> Outcome:
    """One outcome for a parameterised test: what its variants agree on, or that of a variant that runs.

    `own` is what the method's own name is collected as, if it is. It gives the state, unless it skips and variants run.
    """
    told = [outcome for _, outcome in variants]
    if own is not None and (own.state is State.PHANTOM or not any(outcome.state in MAY_RUN for outcome in told)):
        return replace(own, variants=variants)
    running = [outcome for outcome in told if outcome.state in MAY_RUN]
    best = min(running or told, key=lambda outcome: _ORDER[outcome.state])
    return replace(best, variants=variants)
