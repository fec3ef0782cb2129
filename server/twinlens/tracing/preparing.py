"""From what the user names to a model with inputs: a recipe, else the library's own tester, else a shrunk config."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from twinlens.tracing.automatic import config_class_of, prepare_shrunk
from twinlens.tracing.errors import NoRecipeError, UsageError, UserCodeError
from twinlens.tracing.recipes import (
    DEFAULT_SEED,
    Prepared,
    Recipe,
    as_recipe,
    run_recipe,
    with_article,
    workspace_recipes,
)
from twinlens.tracing.targets import Target, load_target, parse_target, suggestion
from twinlens.tracing.tester import prepare_tested, tester_file

Say = Callable[[str], None]
_MOST_CONTAINING = 6


@dataclass(frozen=True, slots=True)
class Ready:
    """`part` is the class to keep, where the model only contains it; empty for the whole model."""

    prepared: Prepared
    part: str = ""


def prepare(text: str, root: Path, seed: int | None, say: Say) -> Ready:
    """Everything that is needed to run one forward of what `text` names; `say` is told what is being done.

    Raises:
        UsageError: it names nothing that can be traced; `NoRecipeError` for a class that nothing is known to make.
        UserCodeError: code of the user's raised before there was a forward to run.
    """
    target = parse_target(text, root)
    if target.file is None and target.module is None:
        return _named_recipe(target, root, seed, say)
    say(f"importing {target.file.name if target.file else target.module}")
    value = load_target(target)
    if isinstance(value, type) and issubclass(value, nn.Module):
        return _for_class(value, target, root, seed, say)
    if inspect.isfunction(value):
        _check_takes_nothing(value, text)
        return Ready(_run(as_recipe(value, Path(inspect.getfile(value))), seed, say))
    raise UsageError(f"{text} is neither an nn.Module class nor a recipe function; name one of these.")


def _check_takes_nothing(function: Callable[..., Any], text: str) -> None:
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise UsageError(
            f"{text} takes {', '.join(needed)}, and a recipe takes nothing; "
            "name a function without arguments that returns (model, inputs)."
        )


def _run(chosen: Recipe, seed: int | None, say: Say) -> Prepared:
    say(f"running the recipe {chosen.title}")
    return run_recipe(chosen, seed)


def _named_recipe(target: Target, root: Path, seed: int | None, say: Say) -> Ready:
    known = list(workspace_recipes(root))
    for recipe in known:
        if target.name in (recipe.name, recipe.options.target):
            return Ready(_run(recipe, seed, say))
    names = [recipe.name for recipe in known]
    have = f"there are {', '.join(names)}" if names else f"{root / '.twinlens' / 'recipes'} holds none"
    targets = [recipe.options.target for recipe in known if recipe.options.target]
    near = suggestion(target.name, [*names, *targets])
    raise UsageError(
        f"There is no recipe {target.name}: {have}; {near or 'name a recipe, file.py::Class or module:Class.'}"
    )


def _for_class(cls: type[nn.Module], target: Target, root: Path, seed: int | None, say: Say) -> Ready:
    file = target.file or Path(inspect.getfile(cls))
    for recipe in _recipes_for(cls, file, root):
        prepared = _run(recipe, seed, say)
        if _contains(prepared.model, cls):
            return _ready(prepared, cls)
        if recipe.is_for(cls):
            returned = with_article(type(prepared.model).__name__)
            raise UsageError(
                f"The recipe {recipe.title} is for {cls.__name__} and returned {returned} "
                "without one; return a model that is or contains it."
            )
    own_seed = DEFAULT_SEED if seed is None else seed
    tested = _from_tester(cls, file, own_seed, say)
    return _ready(tested, cls) if tested else _shrunk(cls, own_seed, say)


def _ready(prepared: Prepared, cls: type[nn.Module]) -> Ready:
    return Ready(prepared, "" if type(prepared.model).__name__ == cls.__name__ else cls.__name__)


def _contains(model: nn.Module, cls: type[nn.Module]) -> bool:
    """By name: the same class may have been imported under two module names."""
    return any(type(module).__name__ == cls.__name__ for module in model.modules())


def _recipes_for(cls: type[nn.Module], file: Path, root: Path) -> Iterator[Recipe]:
    """Recipes for the class itself, then those for a class of the same file, which may contain it."""
    known = {recipe.title: recipe for start in (file.parent, root) for recipe in workspace_recipes(start)}
    yield from (recipe for recipe in known.values() if recipe.is_for(cls))
    module = sys.modules.get(cls.__module__)
    neighbours = [value for value in vars(module).values() if isinstance(value, type)] if module else []
    for recipe in known.values():
        if not recipe.is_for(cls) and any(recipe.is_for(neighbour) for neighbour in neighbours):
            yield recipe


def _from_tester(cls: type[nn.Module], file: Path, seed: int, say: Say) -> Prepared | None:
    tests = tester_file(file)
    if tests is None:
        return None
    say(f"preparing {cls.__name__} as {tests.name} does")
    try:
        return prepare_tested(cls, tests, seed)
    except UserCodeError as error:  # the library's tests are a help, not what the user asked to run
        say(f"{tests.name} is of no use here ({error.doing} raised {error.__cause__!r})")
        return None


def _shrunk(cls: type[nn.Module], seed: int, say: Say) -> Ready:
    """The class itself where it has a config, else a model of the same file that contains it."""
    reasons: list[NoRecipeError] = []
    for candidate in (cls, *_containing(cls)):
        if config_class_of(candidate) is None:
            continue
        try:
            return _ready(prepare_shrunk(candidate, cls, seed, say), cls)
        except NoRecipeError as error:
            reasons.append(error)
    if reasons:
        raise reasons[0]
    raise NoRecipeError(
        f"Nothing is known that makes {with_article(cls.__name__)}: no config class, recipe or model tester is for it; "
        f"write a recipe in {Path('.twinlens') / 'recipes'}."
    )


def _containing(cls: type[nn.Module]) -> list[type[nn.Module]]:
    """Classes of the same module that may contain `cls`, those that are whole models first."""
    module: Any = sys.modules.get(cls.__module__)
    found: list[type[nn.Module]] = []
    for value in vars(module).values() if module else ():
        with suppress(TypeError):
            if issubclass(value, nn.Module) and value is not cls and value.__module__ == cls.__module__:
                found.append(value)
    whole = [
        value for value in found if not value.__name__.endswith("PreTrainedModel") and hasattr(value, "config_class")
    ]
    whole = whole or [value for value in found if value.forward is not nn.Module.forward]
    order = ("Model", "ForCausalLM", "ForConditionalGeneration", "Encoder", "Decoder")

    def rank(candidate: type[nn.Module]) -> tuple[int, int]:
        ending = next((place for place, end in enumerate(order) if candidate.__name__.endswith(end)), len(order))
        return ending, len(candidate.__name__)

    return sorted(whole, key=rank)[:_MOST_CONTAINING]
