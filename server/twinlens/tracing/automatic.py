"""A model and inputs for a class that has no recipe, from a config of its library shrunk in proportion."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import torch
from torch import nn

from twinlens.tracing.errors import RAISED, NoRecipeError
from twinlens.tracing.inputs import guesses
from twinlens.tracing.plans import PLANS, Plan
from twinlens.tracing.recipes import Prepared, seed_everything
from twinlens.tracing.shrink import shrunk
from twinlens.tracing.tracebacks import described

_MOST_PARAMETERS = 200_000_000
Say = Callable[[str], None]


def config_class_of(cls: type[nn.Module]) -> Any:
    """The class of configs that `cls` is made from: its `config_class`, else what its constructor's `config` is
    annotated with, if that can be made without arguments; None if it has neither."""
    stated = getattr(cls, "config_class", None)
    if stated is not None:
        return stated
    try:
        parameters = inspect.signature(cls.__init__).parameters
        annotated = get_type_hints(cls.__init__).get("config")
    except (TypeError, ValueError, NameError):
        return None
    others = [
        p
        for name, p in parameters.items()
        if name not in ("self", "config") and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    is_plain = isinstance(annotated, type) and all(p.default is not p.empty for p in others)
    return annotated if is_plain and _is_made_of_nothing(annotated) else None


def _is_made_of_nothing(config_class: Any) -> bool:
    try:
        config_class()
    except TypeError:
        return False
    return True


def prepare_shrunk(cls: type[nn.Module], part: type[nn.Module], seed: int, say: Say) -> Prepared:
    """A small model of `cls` that is or contains a `part`, with random weights, and inputs with which its forward
    runs.

    Raises:
        NoRecipeError: no plan gave a model that runs; the sentence holds the first reason.
    """
    config_class = config_class_of(cls)
    reason = ""
    for model, config in _small_models(cls, config_class, seed, say):
        if isinstance(model, str):
            reason = reason or model
            continue
        if not any(type(module).__name__ == part.__name__ for module in model.modules()):
            reason = reason or f"no {part.__name__} in it"
            continue
        found = _runnable_inputs(model, config, seed)
        if not isinstance(found, str):
            return Prepared(model, (), found, f"shrunk {config_class.__name__}", seed)
        reason = reason or found
    raise NoRecipeError(f"No small {cls.__name__} could be made to run ({reason}): write a recipe for it.")


def _small_models(cls: Any, config_class: Any, seed: int, say: Say) -> Iterator[tuple[nn.Module | str, Any]]:
    """Models from ever larger configs; where one cannot be made, the reason why instead."""
    tried: list[Any] = []
    for plan in PLANS:
        gc.collect()
        try:
            config = _small_config(config_class, plan)
            if vars(config) in tried:
                continue
            tried.append(vars(config))
            parameters = _count_parameters(cls, config)
            if parameters > _MOST_PARAMETERS:
                yield f"{parameters / 1e6:.0f} million parameters", None
                continue
            say(f"building {cls.__name__} with {parameters / 1e6:.1f} million parameters")
            seed_everything(seed)
            model = cls(config)
        except RAISED as error:  # the next plan is tried; all reasons are told if none succeeds
            yield _one_line(error), None
            continue
        yield model.eval(), config


def _small_config(config_class: Any, plan: Plan) -> Any:
    full = config_class()
    fields = full.to_dict() if hasattr(full, "to_dict") else dict(vars(full))
    small = shrunk(fields, plan)
    for name in _NOT_GIVEN:
        small.pop(name, None)
    return config_class.from_dict(small) if hasattr(config_class, "from_dict") else config_class(**small)


_NOT_GIVEN = ("transformers_version", "architectures", "id2label", "label2id", "torch_dtype", "dtype")


def _count_parameters(cls: Any, config: Any) -> int:
    """Without memory for any: the model is made on the meta device."""
    with torch.device("meta"):
        model = cls(config)
    return sum(parameter.numel() for parameter in model.parameters())


def _runnable_inputs(model: nn.Module, config: Any, seed: int) -> dict[str, Any] | str:
    """The first guess with which the forward runs, or why the first one did not."""
    reason = ""
    for arguments in guesses(model, config):
        seed_everything(seed)
        try:
            with torch.no_grad():
                model(**arguments)
        except RAISED as error:  # the next guess is tried; the first reason is told if none succeeds
            reason = reason or _one_line(error)
            continue
        return arguments
    return reason or "its forward takes nothing that is known"


def _one_line(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return described(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"
