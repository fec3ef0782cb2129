"""Watch every call of every module of a model, and leave the model as it was.

A module's `forward` is shadowed by an attribute of the instance, so that direct calls of `.forward()` are seen as
well as those through `__call__`, and arguments are those after forward pre-hooks, results those before forward hooks.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import torch
from torch import nn

from twinlens.tracing.record import TraceError


class Observer(Protocol):
    """Is told of each call as it happens."""

    def enter(self, module: nn.Module, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """`path` is the module path from the root class. Should this raise, `fail` is called for the same call."""

    def leave(self, result: Any) -> None:
        """The innermost call that was entered and not yet left returns `result`."""

    def fail(self, error: BaseException) -> None:
        """The innermost call that was entered and not yet left raises `error`."""


def module_paths(model: nn.Module) -> dict[nn.Module, list[str]]:
    """Every module of `model` with all the paths at which it hangs, the first being the one that it is known by."""
    root = type(model).__name__
    paths: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        paths.setdefault(module, []).append(f"{root}.{name}" if name else root)
    return paths


def eager_model(model: nn.Module) -> nn.Module:
    """The model that `torch.compile` wrapped, or `model` itself."""
    original = getattr(model, "_orig_mod", None)
    return original if isinstance(original, nn.Module) else model


@contextmanager
def watch(model: nn.Module, observer: Observer) -> Generator[None]:
    """Tell `observer` of every call of `model`'s modules, under `torch.no_grad()`. Compiled code runs eagerly
    meanwhile.

    Raises:
        TraceError: the model is compiled and this torch cannot run it eagerly.
    """
    with ExitStack() as stack:
        stack.enter_context(_eager(model))
        for module, (path, *_aliases) in module_paths(eager_model(model)).items():
            stack.callback(_shadow_forward(module, path, observer))
        yield


def _shadow_forward(module: nn.Module, path: str, observer: Observer) -> Callable[[], None]:
    """Put the watching forward in the module's own attributes; the function that is returned undoes it."""
    own_attributes = module.__dict__
    had_own = "forward" in own_attributes
    original = module.forward

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            try:
                observer.enter(module, path, args, kwargs)
                result = original(*args, **kwargs)
            except BaseException as error:
                observer.fail(error)
                raise
            observer.leave(result)
            return result

    def restore() -> None:
        if own_attributes.get("forward") is not watched:  # the model's own code set another one meanwhile
            return
        if had_own:
            own_attributes["forward"] = original
        else:
            del own_attributes["forward"]

    own_attributes["forward"] = watched
    return restore


@contextmanager
def _eager(model: nn.Module) -> Generator[None]:
    """No compiled code runs: dynamo would compile our watching too, or never call it."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and importing it only to say so takes seconds
        yield
        return
    set_stance = getattr(torch.compiler, "set_stance", None)
    if set_stance is not None:
        with set_stance("force_eager"):
            yield
        return
    for module in model.modules():
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            raise TraceError(
                f"{type(module).__name__} is compiled, and torch {torch.__version__} cannot run it eagerly: "
                "trace the model before torch.compile, or use torch 2.6 or newer."
            )
    yield
