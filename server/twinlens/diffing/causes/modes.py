"""Modes: dropout or batch statistics left on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.evidence import Finding, Site, View, residual, short
from twinlens.diffing.values import Array


def find(site: Site) -> Iterator[Finding]:
    ours, theirs = site.views
    if _trains(theirs) == _trains(ours):
        return
    trainer, name = (theirs, "port") if _trains(theirs) else (ours, "reference")
    share = _dropped_share(trainer)
    is_random = trainer.node.kind == "dropout" or "BatchNorm" in trainer.node.class_name
    if share is None and not (site.is_clean and (is_random or _drops_inside(trainer))):
        return
    seen = f"; {share:.0%} of its values are zeroed" if share else ""
    yield Finding(
        "train-mode",
        f"the {name}'s {short(trainer.call.path)} runs in training mode, the other side in evaluation mode{seen}",
        0.0,
        f"Call .eval() on the {name} before the forward.",
    )


def _trains(view: View) -> bool:
    return view.module.training if view.module else view.side.trace.info.training


def _dropped_share(view: View) -> float | None:
    """The share of zeros where every other value is an input's times 1 / (1 - share)."""
    if not view.side.values.has(view.tensor) or "float" not in view.tensor.dtype:
        return None
    target = np.asarray(view.target(), np.float64)
    share = float(np.mean(target == 0))
    if not 0.005 < share < 0.95:
        return None
    for item in view.seen:
        if item.tensor.shape != view.tensor.shape:
            continue
        source = np.asarray(view.array(item.tensor), np.float64)
        if _is_dropped(source, target):
            return share
    return None


def _is_dropped(source: Array, target: Array) -> bool:
    kept = target != 0
    ratio = float(np.sum(source[kept] * target[kept]) / max(float(np.sum(source[kept] ** 2)), 1e-300))
    return ratio > 1 and residual(source[kept] * ratio, target[kept]) < 1e-2


def _drops_inside(view: View) -> bool:
    """Whether the frame's own code calls a dropout module, or tells attention to drop."""
    for child in view.side.flow.children[view.frame]:
        if view.side.node_of(child).kind == "dropout":
            return True
        for slot in view.side.trace.calls[child].inputs:
            if slot.place == "dropout_p" and slot.text not in ("", "0", "0.0"):
                return True
    return False
