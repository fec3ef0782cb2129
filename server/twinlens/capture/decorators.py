"""`capture_outputs`: collect what `_can_record_outputs` names while a forward runs, and return it with its outputs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

import torch
from torch import nn

from twinlens.capture.collector import Collected, Selection, running
from twinlens.capture.hooks import ensure_hooks
from twinlens.capture.outputs import as_tuple, field, with_fields
from twinlens.capture.recorder import declaration_of
from twinlens.capture.signature import ForwardSignature

Forward = TypeVar("Forward", bound=Callable[..., Any])

# Attention weights of these kinds have always been returned with the rest when `output_attentions` was asked for.
ALSO_ASKED_BY = {"cross_attentions": "output_attentions", "mask_decoder_attentions": "output_attentions"}


@overload
def capture_outputs(forward: Forward, *, tie_last_hidden_states: bool = ...) -> Forward: ...
@overload
def capture_outputs(forward: None = ..., *, tie_last_hidden_states: bool = ...) -> Callable[[Forward], Forward]: ...
def capture_outputs(
    forward: Callable[..., Any] | None = None, *, tie_last_hidden_states: bool = True
) -> Callable[..., Any]:
    """Decorate a model's `forward` so that it returns the outputs of its inner modules that a caller asks for.

    `_can_record_outputs` on the model's class maps the name of an output to what records it: a module class, a class
    name, an `OutputRecorder`, or a list of those. `output_<name>` in the call, or else in `self.config`, asks for it;
    `output_attentions` asks for `cross_attentions` too. `output_hidden_states` may be an integer or a list of them,
    negative ones from the end: the other states are None in the tuple, and a place past the end is warned of. What the
    forward returns (a `ModelOutput`, a dataclass or a dict) bears each as a tuple. `return_dict=False`, in the call or
    in the configuration, turns that into a plain tuple without its empty fields; the configuration's is left to the
    outermost decorated forward.

    Args:
        forward: the method, where the decorator stands without arguments.
        tie_last_hidden_states: whether the last of `hidden_states` is replaced by `last_hidden_state`, which is
            normalised in most language models. `config.tie_last_hidden_states` overrides it.

    The hooks are installed once, on the first call that asks for something. The decorated forward raises TypeError
    where it returns nothing that can bear the outputs, and IndexError where a module returns fewer than declared.
    """
    if forward is None:
        return functools.partial(capture_outputs, tie_last_hidden_states=tie_last_hidden_states)
    inner = forward
    signature = ForwardSignature.of(inner)

    @functools.wraps(inner)
    def wrapper(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        config = getattr(self, "config", None)
        outer = running.collected
        return_dict = signature.given("return_dict", args, kwargs)
        kwargs.pop("return_dict", None)
        if return_dict is None:
            return_dict = outer is not None or getattr(config, "return_dict", None) is not False
        if "return_dict" in signature.keywords:
            args, kwargs = signature.give("return_dict", True, args, kwargs)

        collected: dict[str, Collected] = {}
        for key in declaration_of(self):
            asked = _asked(key, signature, args, kwargs, config)
            if asked:
                collected[key] = Collected(_selection(asked) if key == "hidden_states" else None)
            if not signature.takes_any and f"output_{key}" not in signature.keywords:
                kwargs.pop(f"output_{key}", None)
        if collected:
            ensure_hooks(self)

        running.collected = collected
        try:
            outputs = inner(self, *args, **kwargs)
        finally:
            running.collected = outer

        if collected:
            tie = getattr(config, "tie_last_hidden_states", None)
            outputs = _with_collected(self, outputs, collected, tie_last_hidden_states if tie is None else tie)
        return outputs if return_dict else as_tuple(outputs)

    return wrapper


def _asked(key: str, signature: ForwardSignature, args: tuple[Any, ...], kwargs: Mapping[str, Any], config: Any) -> Any:
    """What the call, or else the configuration, says of the output `key`: None, False or an empty list for no."""
    flags = (f"output_{key}", ALSO_ASKED_BY[key]) if key in ALSO_ASKED_BY else (f"output_{key}",)
    for flag in flags:
        given = signature.given(flag, args, kwargs)
        if given is not None:
            return _truth(given)
    for flag in flags:
        configured = getattr(config, flag, None)
        if configured is not None:
            return _truth(configured)
    return False


def _truth(flag: Any) -> Any:
    # The integer 0 selects the first hidden state: it is not False.
    return flag if not isinstance(flag, int) or isinstance(flag, bool) else [flag]


def _selection(asked: Any) -> Selection | None:
    if asked is True:
        return None
    if isinstance(asked, Iterable) and all(isinstance(place, int) for place in asked):
        return Selection(asked)
    raise TypeError(f"output_hidden_states is {asked!r}: it must be True, False, an integer or a list of integers")


def _with_collected(model: nn.Module, outputs: Any, collected: dict[str, Collected], tie: bool) -> Any:
    fields = {key: values.finish() for key, values in collected.items()}
    states = fields.get("hidden_states")
    if tie and states and states[-1] is not None:
        last = field(outputs, "vision_hidden_states")
        last = field(outputs, "last_hidden_state") if last is None else last
        if last is not None:
            fields["hidden_states"] = (*states[:-1], last)
    if not torch.compiler.is_compiling():
        for key, entries in fields.items():
            if not entries and key not in ALSO_ASKED_BY:
                warnings.warn(_why_empty(model, key, collected[key].empty_calls), stacklevel=3)
            elif entries and (missed := collected[key].missed()):
                warnings.warn(_beyond(model, missed, len(entries)), stacklevel=3)
    return with_fields(outputs, fields, model)


def _why_empty(model: nn.Module, key: str, empty_calls: int) -> str:
    asked = f"{type(model).__name__}: output_{key} was asked for, but "
    if not empty_calls:
        return asked + f"no module that _can_record_outputs[{key!r}] names ran"
    implementation = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if "attentions" in key and implementation not in (None, "eager"):
        return asked + f"the attention implementation {implementation!r} computes no weights: use 'eager'"
    return asked + f"all {empty_calls} modules that it records returned None for it"


def _beyond(model: nn.Module, missed: list[int], count: int) -> str:
    asked = ", ".join(map(str, missed))
    return (
        f"{type(model).__name__}: output_hidden_states asks for {asked}, but the forward made {count} hidden states, "
        f"0 to {count - 1} or {-count} to -1"
    )
