"""`merge_with_config_defaults`: arguments that the call leaves out come from the model's configuration."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch
from torch import nn

from twinlens.capture.signature import ForwardSignature

Forward = TypeVar("Forward", bound=Callable[..., Any])

FROM_CONFIG = ("use_cache", "vision_feature_layer", "vision_feature_select_strategy", "vision_aspect_ratio")
SELECT_STRATEGIES = ("default", "full")


def merge_with_config_defaults(forward: Forward) -> Forward:
    """Decorate a `forward` so that what its caller leaves out, or gives as None, comes from `self.config`.

    Meant are `use_cache`, `vision_feature_layer`, `vision_feature_select_strategy` and `vision_aspect_ratio`, where
    `forward` takes them. An explicit argument wins, positional or by keyword. Under gradient checkpointing in training
    `use_cache` is turned off, with one warning a decorated forward. `is_causal`, from the call or the configuration,
    is passed on to a forward that takes it; a call's own value also stands in `self.config` while the forward runs,
    which two threads with one model and different values would see of each other.

    The decorated forward raises ValueError for a `vision_feature_select_strategy` that is neither "default" nor "full".
    """
    signature = ForwardSignature.of(forward)
    taken = tuple(name for name in FROM_CONFIG if signature.takes(name))
    warned = False

    @functools.wraps(forward)
    def wrapper(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal warned
        config = getattr(self, "config", None)
        for name in taken:
            given = signature.given(name, args, kwargs)
            value = getattr(config, name, None) if given is None else given
            if value is None:
                continue
            if name == "use_cache" and value and _checkpoints(self):
                value = False
                if not warned and not torch.compiler.is_compiling():
                    warned = True
                    warnings.warn(
                        f"{type(self).__name__}: use_cache=True does not go with gradient checkpointing, "
                        "use_cache=False is used",
                        stacklevel=2,
                    )
            if name == "vision_feature_select_strategy" and value not in SELECT_STRATEGIES:
                raise ValueError(f"vision_feature_select_strategy is {value!r}: it must be one of {SELECT_STRATEGIES}")
            if value is not given:
                args, kwargs = signature.give(name, value, args, kwargs)
        if not signature.takes("is_causal"):
            return forward(self, *args, **kwargs)
        given = signature.given("is_causal", args, kwargs)
        configured = getattr(config, "is_causal", None)
        if given is None or config is None or given == configured:
            if given is None and configured is not None:
                args, kwargs = signature.give("is_causal", configured, args, kwargs)
            return forward(self, *args, **kwargs)
        with _configured(config, "is_causal", given):
            return forward(self, *args, **kwargs)

    return cast("Forward", wrapper)


def _checkpoints(model: nn.Module) -> bool:
    # The condition under which a checkpointed layer really is one: without gradients nothing is recomputed.
    return bool(getattr(model, "gradient_checkpointing", False)) and model.training and torch.is_grad_enabled()


@contextmanager
def _configured(config: Any, name: str, value: Any) -> Generator[None]:
    """While it lasts, `config.<name>` is `value`: masks are made from the configuration, not from the call."""
    was_there = hasattr(config, name)
    before = getattr(config, name, None)
    setattr(config, name, value)
    try:
        yield
    finally:
        if was_there:
            setattr(config, name, before)
        else:
            delattr(config, name)
