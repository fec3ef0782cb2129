"""The forward hooks that record, and their installation: once a model, whoever asks first."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from twinlens.capture.collector import running
from twinlens.capture.recorder import (
    DECLARATION,
    OutputRecorder,
    bears,
    declaration_of,
    declares,
    matches,
    recorders_of,
)

_HOOKED_FOR = "_twinlens_hooked_for"
_installing = threading.RLock()


@dataclass(frozen=True)
class RecordingHook:
    """Records a module's output under `key`, when the running forward collects that.

    An object, not a closure: a model with hooks can be pickled and copied, and equal hooks are told apart from others.
    """

    key: str
    index: int

    def __call__(self, module: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        """Called by `nn.Module` after the forward of `module`."""
        collected = running.collected
        if collected is not None and self.key in collected:
            collected[self.key].add(_element(output, self.index, self.key, module))


@dataclass(frozen=True)
class InitialStateHook:
    """As `RecordingHook`, but the first one that runs in a forward records its module's input before its output."""

    key: str
    index: int

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Called by `nn.Module` after the forward of `module`: a hook registered with `with_kwargs`."""
        collected = running.collected
        if collected is not None and self.key in collected:
            into = collected[self.key]
            if not into.entries:
                into.add(args[0] if args else _input_of(module, kwargs))
            into.add(_element(output, self.index, self.key, module))


Hook = RecordingHook | InitialStateHook


def _element(output: Any, index: int, key: str, module: nn.Module) -> Any:
    """Raises IndexError where `output` is a tuple or a list that has no element `index`."""
    if not isinstance(output, (tuple, list)):
        return output
    if -len(output) <= index < len(output):
        return output[index]
    raise IndexError(
        f"_can_record_outputs[{key!r}] records element {index} of what {type(module).__name__} returns, "
        f"which has {len(output)}"
    )


def _input_of(module: nn.Module, kwargs: dict[str, Any]) -> Any:
    if "hidden_states" in kwargs:
        return kwargs["hidden_states"]
    for value in kwargs.values():
        if isinstance(value, torch.Tensor):
            return value
    raise ValueError(
        f"{type(module).__name__} was called without a tensor, so hidden_states cannot begin with its input: "
        "declare OutputRecorder(..., capture_initial_hidden_state=False)"
    )


def ensure_hooks(model: nn.Module) -> bool:
    """Install the hooks of `model` and of every model within it, unless they are there; safe from many threads."""
    declared = getattr(model, DECLARATION, None)
    if model.__dict__.get(_HOOKED_FOR) == id(declared):
        return True
    with _installing:
        if model.__dict__.get(_HOOKED_FOR) != id(declared):
            _install(model)
    return True


# Under `torch.compile` the hooks are installed while the graph is traced, not by the graph: the lock would break it.
# The public spelling, `torch.compiler.assume_constant_result`, sets this same mark but imports the whole compiler.
ensure_hooks._dynamo_marked_constant = True  # ty: ignore[missing-attribute]


def forget_hooks(model: nn.Module) -> None:
    """Let the next call that asks for outputs bring the hooks in `model` in step with what is declared by then."""
    with _installing:
        for module in model.modules():
            module.__dict__.pop(_HOOKED_FOR, None)


@dataclass(frozen=True)
class _Site:
    """A module, what it runs (the original where it is what `torch.compile` returned), and its path."""

    module: nn.Module
    runs: nn.Module
    path: str
    in_compiled: bool


def _install(model: nn.Module) -> None:
    plan = _plan(model)
    late = False
    for module in model.modules():
        site, wanted = plan.get(id(module), (None, []))
        present = {number: hook for number, hook in module._forward_hooks.items() if isinstance(hook, Hook)}
        for number, hook in present.items():
            if hook not in wanted:
                del module._forward_hooks[number]
                module._forward_hooks_with_kwargs.pop(number, None)
        for hook in wanted:
            if hook not in present.values():
                module.register_forward_hook(hook, with_kwargs=isinstance(hook, InitialStateHook))
                late = late or (site is not None and site.in_compiled)
    for owner in _models_in(model, ""):
        setattr(owner.runs, _HOOKED_FOR, id(getattr(owner.runs, DECLARATION, None)))
    if late:
        warnings.warn(
            f"a part of {type(model).__name__} was compiled before its outputs were first asked for: if it has run "
            "already, call torch.compiler.reset(), or its compiled code will not record them",
            stacklevel=2,
        )


def _plan(model: nn.Module) -> dict[int, tuple[_Site, list[Hook]]]:
    """The hooks wanted at each site of `model`, by the identity of its module."""
    plan: dict[int, tuple[_Site, list[Hook]]] = {}
    for owner in _models_in(model, ""):
        sites = list(_sites(_Site(owner.runs, owner.runs, "", owner.in_compiled)))
        for key, recorder in recorders_of(declaration_of(owner.runs)):
            hook = _hook(key, recorder)
            for site in _meant(recorder, sites, owner.path):
                _, hooks = plan.setdefault(id(site.module), (site, []))
                if hook not in hooks:
                    hooks.append(hook)
    return plan


def _models_in(module: nn.Module, path: str, in_compiled: bool = False) -> Iterator[_Site]:
    """`module` and each model below it that declares."""
    if not path or declares(module):
        yield _Site(module, module, path, in_compiled)
    for child in _children(_Site(module, module, path, in_compiled)):
        yield from _models_in(child.runs, child.path, child.in_compiled or child.runs is not child.module)


def _sites(root: _Site) -> Iterator[_Site]:
    """`root` and each module below it, down to the next model that declares for itself."""
    yield root
    for child in _children(root):
        if not declares(child.runs):
            yield from _sites(child)


def _children(site: _Site) -> Iterator[_Site]:
    below_compiled = site.in_compiled or site.runs is not site.module
    for name, child in site.runs.named_children():
        path = f"{site.path}.{name}" if site.path else name
        yield _Site(child, _original(child), path, below_compiled or child._compiled_call_impl is not None)


def _original(module: nn.Module) -> nn.Module:
    """What `module` compiles, if it is what `torch.compile` returned; told without importing the compiler."""
    if type(module).__name__ == "OptimizedModule" and type(module).__module__.startswith("torch._dynamo"):
        return module._modules.get("_orig_mod") or module
    return module


def _meant(recorder: OutputRecorder, sites: list[_Site], prefix: str) -> list[_Site]:
    """The sites that `recorder` means.

    A `layer_name` that nothing within the model bears may name the place of the model itself in its parent, `prefix`.
    """
    found = [site for site in sites if matches(recorder, site.runs, site.path)]
    if not found and recorder.layer_name and bears(prefix, recorder.layer_name.strip(".")):
        found = [site for site in sites if matches(recorder, site.runs, f"{prefix}.{site.path}".strip("."))]
    return found


def _hook(key: str, recorder: OutputRecorder) -> Hook:
    if key == "hidden_states" and recorder.capture_initial_hidden_state:
        return InitialStateHook(key, recorder.index)
    return RecordingHook(key, recorder.index)
