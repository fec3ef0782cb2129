"""What is known of a model before its forward runs: its modules, their sources, its parameters, the versions."""

from __future__ import annotations

import inspect
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

import torch
from torch import nn

import twinlens
from twinlens.tracing.lines import finite_json
from twinlens.tracing.record import Info, Module, Source

_VERSIONED = ("torch", "transformers", "safetensors")


def now() -> str:
    """UTC, ISO 8601 to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def distributed_rank() -> tuple[int, int]:
    """(rank, world size); (0, 1) outside `torchrun`."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def model_info(model: nn.Module, *, target: str, recipe: str, part: str, seed: int | None) -> Info:
    floating = [parameter for parameter in model.parameters() if parameter.is_floating_point()]
    config = getattr(model, "config", None)
    rank, world_size = distributed_rank()
    return Info(
        class_name=type(model).__name__,
        created=now(),
        target=target,
        recipe=recipe,
        part=part,
        seed=seed,
        dtype=_joined(str(parameter.dtype).removeprefix("torch.") for parameter in floating),
        device=_joined(str(parameter.device) for parameter in model.parameters()),
        attention_implementation=str(getattr(config, "_attn_implementation", None) or ""),
        training=model.training,
        config=_config_fields(config),
        versions=_versions(),
        rank=rank,
        world_size=world_size,
    )


def _joined(words: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def _config_fields(config: Any) -> Mapping[str, object]:
    to_dict = getattr(config, "to_dict", None)
    if callable(to_dict):
        fields = to_dict()
    elif isinstance(config, Mapping):
        fields = config
    else:
        fields = getattr(config, "__dict__", {})
    return finite_json(fields) if isinstance(fields, Mapping) else {}


def _versions() -> dict[str, str]:
    """Of what is imported; nothing is imported to ask for its version."""
    versions = {"python": platform.python_version(), "twinlens": twinlens.__version__}
    for name in _VERSIONED:
        module = sys.modules.get(name)
        if module is not None:
            versions[name] = str(getattr(module, "__version__", "unknown"))
    return versions


def describe_module(module: nn.Module, paths: list[str]) -> Module:
    cls = type(module)
    return Module(
        path=paths[0],
        aliases=tuple(paths[1:]),
        class_name=cls.__name__,
        qualified_name=f"{cls.__module__}.{cls.__qualname__}",
        source=_source(cls),
        training=module.training,
        attributes=_plain_attributes(module),
        description=module.extra_repr(),
    )


def _plain_attributes(module: nn.Module) -> dict[str, bool | int | float | str | None]:
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and name != "training"
        and (value is None or isinstance(value, (bool, int, float, str)))
    }


@lru_cache(maxsize=4096)
def _source(cls: type[nn.Module]) -> Source | None:
    forward: Callable[..., Any] = inspect.unwrap(cls.forward)
    try:
        file = inspect.getsourcefile(forward)
        _lines, line = inspect.getsourcelines(forward)
    except (OSError, TypeError):
        return None
    try:
        _lines, class_line = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        class_line = line
    return Source(file, line, class_line) if file else None
