"""Keep output recorders in step with replaced classes."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from typing import Any, Literal

from torch import nn

from twinlens.capture.hooks import forget_hooks
from twinlens.capture.recorder import DECLARATION, declaration_of, declares, is_recorder, no_recorder
from twinlens.patching.registry import PatchMapping, get_patch_mapping

Scope = Literal["instance", "class"]

_TRANSFORMERS_CAPTURE = "transformers.utils.output_capturing"


def patch_output_recorders(model: nn.Module, *, scope: Scope = "instance") -> None:
    """Let the recorders of `model`, and of every model within it, name the registered replacements.

    With `scope="instance"` each model gets a declaration of its own, and others of its class keep theirs. With
    `scope="class"`, as transformers does it, the declaration that the class shares is changed, for every instance there
    is or will be. Recorders of every form are patched, transformers' `OutputRecorder` too; a list stays a list.

    Raises ValueError for another scope, TypeError for a declaration that holds something other than recorders.
    """
    if scope not in ("instance", "class"):
        raise ValueError(f"scope is {scope!r}: it must be 'instance' or 'class'")
    mapping = PatchMapping(get_patch_mapping())
    changed = [owner for owner in model.modules() if patch_declaration(owner, mapping, scope)]
    if changed:
        renew_hooks(model)


def renew_hooks(model: nn.Module) -> None:
    """Bring the hooks within `model` in step with what it declares: ours at the next call, transformers' at once."""
    forget_hooks(model)
    if _TRANSFORMERS_CAPTURE in sys.modules:
        _install_hooks_of_transformers(model, sys.modules[_TRANSFORMERS_CAPTURE])


def patch_declaration(owner: nn.Module, mapping: PatchMapping, scope: Scope = "instance") -> bool:
    """Patch what `owner` itself declares; whether that changed anything."""
    if not declares(owner):
        return False
    declared = declaration_of(owner)
    patched = {key: _patched_value(key, value, mapping) for key, value in declared.items()}
    if all(patched[key] is value for key, value in declared.items()):
        return False
    if scope == "instance":
        setattr(owner, DECLARATION, patched)
        return True
    home = next(cls for cls in type(owner).__mro__ if DECLARATION in vars(cls))
    # transformers keeps a reference to the shared mapping, ours is known by its identity: both must see the change.
    vars(home)[DECLARATION].update(patched)
    setattr(home, DECLARATION, patched)
    return True


def _patched_value(key: str, value: Any, mapping: PatchMapping) -> Any:
    """`value` itself where it names nothing that is replaced."""
    if not isinstance(value, list):
        return _patched(key, value, mapping)
    entries = [_patched(key, entry, mapping) for entry in value]
    return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value


def _patched(key: str, entry: Any, mapping: PatchMapping) -> Any:
    if isinstance(entry, str):
        return mapping.replacement_for(entry) or entry
    if isinstance(entry, type) and issubclass(entry, nn.Module):
        return _replacement(entry, mapping)
    if not is_recorder(entry):
        raise no_recorder(key, entry)
    target, replacement = entry.target_class, None
    if isinstance(target, tuple):
        replacement = tuple(_replacement(cls, mapping) for cls in target)
    elif target is not None:
        replacement = _replacement(target, mapping)
    elif name := getattr(entry, "class_name", None):
        replacement = mapping.replacement_for(name)
    if replacement is None or replacement == target:
        return entry
    recorder = copy.copy(entry)
    recorder.target_class = replacement
    if target is None:
        recorder.class_name = None
    return recorder


def _replacement(cls: type[nn.Module], mapping: PatchMapping) -> type[nn.Module]:
    if cls in mapping.replacements.values():
        return cls
    return mapping.replacement_for(cls.__name__) or cls


def _install_hooks_of_transformers(model: nn.Module, capturing: Any) -> None:
    """Install the hooks of transformers' own `capture_outputs` by what the models within `model` declare now.

    transformers looks the declaration up by class when it installs its hooks, and so would not see an instance's. The
    hooks are therefore installed here, while the classes' entries stand for the instances', and put back after.
    """
    namespace = vars(capturing)
    registry: dict[str, Any] = capturing._CAN_RECORD_REGISTRY
    done: set[int] = set()
    with capturing._hook_installation_lock:
        for owner in model.modules():
            if id(owner) in done or not _is_captured_by(type(owner), namespace):
                continue
            shared: dict[str, Any] = {}
            for module in owner.modules():
                done.add(id(module))
                _drop_hooks_of(module, namespace)
                if declares(module):
                    shared.setdefault(str(type(module)), dict.get(registry, str(type(module))))
                    dict.__setitem__(registry, str(type(module)), declaration_of(module))
            try:
                capturing.install_all_output_capturing_hooks(owner)
            finally:
                for name, declared in shared.items():
                    dict.__setitem__(registry, name, declared)


def _is_captured_by(cls: type, namespace: Mapping[str, Any]) -> bool:
    """Whether a decorator that lives in `namespace` wraps the forward of `cls`."""
    function: Any = getattr(cls, "forward", None)
    while function is not None:
        if getattr(function, "__globals__", None) is namespace:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def _drop_hooks_of(module: nn.Module, namespace: Mapping[str, Any]) -> None:
    for number, hook in list(module._forward_hooks.items()):
        if getattr(hook, "__globals__", None) is namespace:
            del module._forward_hooks[number]
