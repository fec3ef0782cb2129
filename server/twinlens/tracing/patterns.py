"""Shell patterns that name modules by their class or their path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from torch import nn

from twinlens.tracing.taps import TAPPED
from twinlens.tracing.watch import module_paths


def is_named(patterns: Sequence[str], root_class: str, path: str, class_name: str) -> bool:
    """Whether a pattern matches the class, the whole path (`Net.mlp.up`) or the path inside the root (`mlp.up`)."""
    inner = path.removeprefix(f"{root_class}.")
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (class_name, path, inner))


def naming_nothing(patterns: Sequence[str], model: nn.Module) -> Iterator[str]:
    """Those of `patterns` that match no module of `model`, nor a function that is recorded as a call."""
    root_class = type(model).__name__
    modules = [(path, type(module).__name__) for module, paths in module_paths(model).items() for path in paths]
    functions = {name for name, _parameters in TAPPED.values()}
    for pattern in patterns:
        is_function = pattern.endswith("()") or any(fnmatchcase(name, pattern) for name in functions)
        if not is_function and not any(is_named([pattern], root_class, path, name) for path, name in modules):
            yield pattern
