"""What a model declares in `_can_record_outputs`, and which modules a declaration means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

DECLARATION = "_can_record_outputs"


@dataclass
class OutputRecorder:
    """Which modules to record, and what of their output.

    Attributes:
        target_class: the `nn.Module` subclass whose instances are recorded, a tuple of such classes, or None where
            `class_name` is given instead.
        index: the element to take where a module returns a tuple or a list; anything else is recorded as it is.
        layer_name: records only modules whose path bears this name as whole segments: `"attn"` means
            `layers.0.attn` and what is below it, never `layers.0.crossattn`.
        class_name: the name of the class, for one that cannot be imported here, or the last segments of a path.
        capture_initial_hidden_state: whether `hidden_states` begins with the first recorded module's input.
        num_hidden_layers_key: accepted so that declarations written for transformers read the same here; negative
            indices are counted from the states that the forward really made, so no configuration is asked.
    """

    target_class: type[nn.Module] | tuple[type[nn.Module], ...] | None
    index: int = 0
    layer_name: str | None = None
    class_name: str | None = None
    capture_initial_hidden_state: bool = True
    num_hidden_layers_key: str = "num_hidden_layers"


Declaration = Mapping[str, Any]


def declares(module: nn.Module) -> bool:
    """Whether `module` is a model with a declaration of its own, be it None or empty."""
    return hasattr(module, DECLARATION)


def declaration_of(model: nn.Module) -> Declaration:
    """`model._can_record_outputs`, or an empty mapping where it has none.

    Raises TypeError where it is no mapping.
    """
    declared = getattr(model, DECLARATION, None)
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        raise TypeError(
            f"{type(model).__name__}.{DECLARATION} is a {type(declared).__name__}: "
            "it must map the name of an output to what records it"
        )
    return declared


def is_recorder(value: object) -> bool:
    """Whether `value` is an `OutputRecorder`, ours or transformers'."""
    return not isinstance(value, (str, type)) and hasattr(value, "target_class") and hasattr(value, "index")


def recorders_of(declared: Declaration) -> Iterator[tuple[str, OutputRecorder]]:
    """Each output's name with one of its recorders, whatever form the declaration gives it.

    Raises TypeError for a value that is no recorder.
    """
    for key, value in declared.items():
        for entry in value if isinstance(value, list) else [value]:
            yield key, _recorder(key, entry)


def default_index(key: str) -> int:
    """The element that a bare class records: a layer's hidden state comes first, attention weights second."""
    return 0 if "hidden_states" in key else 1


def _recorder(key: str, entry: Any) -> OutputRecorder:
    if isinstance(entry, str):
        return OutputRecorder(None, index=default_index(key), class_name=entry)
    if isinstance(entry, type) and issubclass(entry, nn.Module):
        return OutputRecorder(entry, index=default_index(key))
    if is_recorder(entry):
        return OutputRecorder(
            entry.target_class,
            entry.index,
            getattr(entry, "layer_name", None),
            getattr(entry, "class_name", None),
            getattr(entry, "capture_initial_hidden_state", True),
        )
    raise no_recorder(key, entry)


def no_recorder(key: str, entry: object) -> TypeError:
    """The error for a declaration that holds `entry`, which records nothing, under `key`."""
    remedy = "a list is meant" if isinstance(entry, tuple) else "give a module class, its name or an OutputRecorder"
    return TypeError(f"{DECLARATION}[{key!r}] holds {entry!r}, a {type(entry).__name__}: {remedy}")


def matches(recorder: OutputRecorder, module: nn.Module, path: str) -> bool:
    """Whether `recorder` means `module`, which stands at `path` (dotted, from the declaring model)."""
    return _is_of_class(recorder, module, path) and (
        recorder.layer_name is None or bears(path, recorder.layer_name.strip("."))
    )


def bears(path: str, name: str) -> bool:
    """Whether the dotted `path` holds `name` as whole segments."""
    return f".{name}." in f".{path}."


def _is_of_class(recorder: OutputRecorder, module: nn.Module, path: str) -> bool:
    if recorder.target_class is not None and isinstance(module, recorder.target_class):
        return True
    name = recorder.class_name
    if name is None:
        return False
    return any(cls.__name__ == name for cls in type(module).__mro__) or f".{path}".endswith(f".{name.strip('.')}")
