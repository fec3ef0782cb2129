"""Whether a model gives other numbers in training mode. A trace is made in the mode that the recipe leaves it in."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from twinlens.tracing.watch import module_paths


def training_effect(model: nn.Module) -> str:
    """What in `model` is in training mode and acts otherwise in evaluation mode, the first of it; empty if nothing."""
    for module, (path, *_aliases) in module_paths(model).items():
        if not module.training:
            continue
        if isinstance(module, _DropoutNd) and module.p > 0:
            return f"{path} drops {module.p:.0%} of its input"
        if isinstance(module, _BatchNorm):
            return f"{path} normalises by this batch"
    config = getattr(model, "config", None)
    for name, value in vars(config).items() if model.training and hasattr(config, "__dict__") else ():
        if "drop" in name and isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return f"its config has {name}={value}"
    return ""
