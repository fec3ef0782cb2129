"""How far to shrink a config, in which order to try."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """How far to shrink. Plans are tried in turn: the smaller a model, the more of its author's assumptions break."""

    layers: int = 2
    smallest_head: int = 8
    """Widths are divided as long as no head gets narrower than this; 0 leaves widths alone."""
    fewer_heads: bool = False
    """Divide the counts of heads along with the widths, in place of the heads' own dimensions."""
    widest: int = 64
    """Widths are divided no further when no hidden size is above this."""
    fills_gaps: bool = False
    """Give a value to fields that have none by default, but that models of their kind need."""
    shrinks_vocabulary: bool = True
    shrinks_images: bool = True
    shrinks_windows: bool = True


PLANS = (
    Plan(),
    Plan(fills_gaps=True),
    Plan(shrinks_images=False, shrinks_windows=False),
    Plan(fewer_heads=True, widest=256, shrinks_windows=False),
    Plan(smallest_head=0, shrinks_windows=False),
    Plan(layers=4, smallest_head=16, widest=256, shrinks_images=False, shrinks_windows=False),
    Plan(layers=8, smallest_head=0, shrinks_images=False, shrinks_windows=False),
    Plan(layers=2, smallest_head=0, shrinks_vocabulary=False, shrinks_images=False, shrinks_windows=False),
)
