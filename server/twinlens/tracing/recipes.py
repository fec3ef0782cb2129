"""Recipes: functions that return a model and the inputs of one forward, and finding the one for a class.

A workspace keeps its recipes in `.twinlens/recipes/*.py`:

    import twinlens

    @twinlens.recipe(target="LlamaForCausalLM", seed=673)
    def llama():
        model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2)).eval()
        return model, {"input_ids": torch.arange(16)[None]}

The model is traced in the mode that the recipe leaves it in: a new module is in training mode, where dropout is random,
and a trace of it says so. The inputs are a dict of keyword arguments, a tuple or list of positional ones, or the one
argument.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from twinlens.tracing.errors import RAISED, UsageError, UserCodeError
from twinlens.tracing.folders import nearest_recipes
from twinlens.tracing.targets import import_file

DEFAULT_SEED = 673

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RecipeOptions:
    target: str | None
    seed: int


@dataclass(frozen=True, slots=True)
class Recipe:
    function: Callable[[], Any]
    options: RecipeOptions
    file: Path

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "recipe")

    @property
    def title(self) -> str:
        return f"{self.file.name}::{self.name}"

    def is_for(self, cls: type) -> bool:
        """Whether the recipe names `cls`: by its name, or as `file.py::Name` or `module:Name`."""
        target = self.options.target
        if target is None:
            return False
        where, _, name = target.replace("::", ":").rpartition(":")
        if name != cls.__name__:
            return False
        return not where or where in (cls.__module__, _file_name(cls)) or cls.__module__.endswith(f".{where}")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model and the arguments of one forward, ready to run. `source` tells where they come from."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    source: str
    seed: int


def recipe(target: str | type | None = None, seed: int = DEFAULT_SEED) -> Callable[[_Function], _Function]:
    """Mark a function that returns `(model, inputs)` as a recipe.

    Args:
        target: the class that it is for: its name, `file.py::Name`, `module:Name`, or the class itself. Without one,
            the recipe is found by its own name only.
        seed: given to torch, `random` and NumPy before the function is called.
    """
    name = target if target is None or isinstance(target, str) else f"{target.__module__}:{target.__name__}"

    def mark(function: _Function) -> _Function:
        function.__dict__["__twinlens_recipe__"] = RecipeOptions(name, seed)
        return function

    return mark


def as_recipe(value: Any, file: Path) -> Recipe:
    """`value`, a function of `file` that the user named, as a recipe, marked or not."""
    options = getattr(value, "__twinlens_recipe__", None) or RecipeOptions(None, DEFAULT_SEED)
    return Recipe(value, options, file)


def workspace_recipes(start: Path) -> Iterator[Recipe]:
    """The recipes in `nearest_recipes(start)`. Raises `UserCodeError` where importing one of them raises."""
    for file in nearest_recipes(start):
        for value in vars(import_file(file)).values():
            if isinstance(getattr(value, "__twinlens_recipe__", None), RecipeOptions):
                yield as_recipe(value, file)


def run_recipe(chosen: Recipe, seed: int | None) -> Prepared:
    """Call the recipe with everything seeded.

    Raises:
        UserCodeError: the recipe raised.
        UsageError: it returned something else than a module and inputs.
    """
    own_seed = chosen.options.seed if seed is None else seed
    seed_everything(own_seed)
    try:
        result = chosen.function()
    except RAISED as error:
        raise UserCodeError(f"running the recipe {chosen.title}") from error
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], nn.Module):
        raise UsageError(f"The recipe {chosen.title} returned {_described(result)}; return (model, inputs).")
    args, kwargs = _arguments(result[1])
    return Prepared(result[0], args, kwargs, chosen.title, own_seed)


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}


def _described(result: Any) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {', '.join(type(item).__name__ for item in result) or 'nothing'}"
    if isinstance(result, type):
        return f"the class {result.__name__}"
    return with_article(type(result).__name__) if result is not None else "None"


def with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def seed_everything(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def _file_name(cls: type) -> str:
    return Path(getattr(sys.modules.get(cls.__module__), "__file__", None) or "").name
