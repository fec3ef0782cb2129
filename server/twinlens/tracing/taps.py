"""See the calls of a few functions that decide what attention and routing do, and that no module stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

TAPPED: Mapping[Callable[..., Any], tuple[str, tuple[str, ...]]] = {
    functional.scaled_dot_product_attention: (
        "scaled_dot_product_attention",
        ("query", "key", "value", "attn_mask", "dropout_p", "is_causal"),
    ),
    functional.softmax: ("softmax", ("input", "dim")),
    torch.softmax: ("softmax", ("input", "dim")),
    torch.Tensor.softmax: ("softmax", ("input", "dim")),
    torch.topk: ("topk", ("input", "k", "dim")),
    torch.Tensor.topk: ("topk", ("input", "k", "dim")),
}
"""Each function with the name that it is recorded under and those of its positional parameters."""


class FunctionObserver(Protocol):
    def enter_function(
        self, name: str, parameters: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None: ...

    def leave(self, result: Any) -> None: ...

    def fail(self, error: BaseException) -> None: ...


class Taps(TorchFunctionMode):
    """While entered, tells `observer` of each call of a tapped function, whatever name the model's code calls it
    by."""

    def __init__(self, observer: FunctionObserver) -> None:
        super().__init__()
        self._observer = observer

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # torch fixes this signature
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        tapped = TAPPED.get(func)
        if tapped is None:
            return func(*args, **kwargs)
        try:
            self._observer.enter_function(*tapped, args, kwargs)
            result = func(*args, **kwargs)
        except BaseException as error:
            self._observer.fail(error)
            raise
        self._observer.leave(result)
        return result
