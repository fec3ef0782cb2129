"""The process of a replay: `python -m twinlens.diffing.replaying`, in the user's interpreter.

Each call of the port's modules is given what the reference's was given, and hands on to its caller what the
reference's returned. Recorded is what its caller gave to it and what it returned, so that both the caller's own code
and the module are judged on right values. Torch and the standard library only.
"""

from __future__ import annotations

import dataclasses
import functools
import mmap
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from twinlens.diffing.feeding import FedCall, Feed, Feeding, key_of
from twinlens.tracing.context import record
from twinlens.tracing.errors import RAISED, UsageError, UserCodeError
from twinlens.tracing.leaves import positional_names
from twinlens.tracing.metadata import model_info
from twinlens.tracing.preparing import prepare
from twinlens.tracing.reading import read_trace
from twinlens.tracing.recipes import seed_everything
from twinlens.tracing.record import Tensor, Trace, TraceError
from twinlens.tracing.run import end_with_parent, own_standard_output
from twinlens.tracing.tracebacks import described, place_of
from twinlens.tracing.watch import eager_model, module_paths
from twinlens.tracing.writer import Recording


class RecordedValues:
    """Tensors of a trace, read from its files when they are asked for."""

    def __init__(self, trace: Trace) -> None:
        self._folder = trace.folder
        self._maps: dict[str, mmap.mmap] = {}
        self._tensors: dict[int, Tensor] = {}
        for call in trace.calls:
            for slot in (*call.inputs, *call.outputs):
                if slot.tensor is not None and slot.tensor.data is not None:
                    self._tensors[slot.tensor.id] = slot.tensor

    def joined(self, feed: Feed) -> torch.Tensor | None:
        """None where a tensor's values were not kept."""
        parts = [self._read(identity) for identity in feed.tensors]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        whole = known[0] if len(known) == 1 else torch.cat(known, -1)
        return whole if feed.columns is None else whole[..., list(feed.columns)]

    def _read(self, identity: int) -> torch.Tensor | None:
        tensor = self._tensors.get(identity)
        if tensor is None or tensor.data is None:
            return None
        dtype = getattr(torch, tensor.dtype)
        if tensor.data.file not in self._maps:
            with (self._folder / tensor.data.file).open("rb") as stream:
                self._maps[tensor.data.file] = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        raw = bytearray(self._maps[tensor.data.file][tensor.data.start : tensor.data.stop])
        return (
            torch.frombuffer(raw, dtype=dtype).reshape(tensor.shape) if raw else torch.empty(tensor.shape, dtype=dtype)
        )


class Feeder:
    """Puts the reference's tensors into arguments and results."""

    def __init__(self, values: RecordedValues, calls: Mapping[str, FedCall]) -> None:
        self._values = values
        self._calls = calls
        self._numbers: dict[str, int] = {}

    def next_call(self, path: str) -> FedCall | None:
        """What the call of `path` that begins now is to be fed."""
        number = self._numbers.get(path, 0)
        self._numbers[path] = number + 1
        return self._calls.get(key_of(path, 0, number))

    def fed(self, value: Any, place: str, feeds: Sequence[Feed]) -> Any:
        """`value` with the tensors that have a place in `feeds` replaced; containers are made anew."""
        if isinstance(value, torch.Tensor):
            feed = next((item for item in feeds if item.place == place), None)
            return value if feed is None else self._in_place_of(value, feed)
        if isinstance(value, Mapping):
            made = {key: self.fed(item, _joined(place, key), feeds) for key, item in value.items()}
            return type(value)(**made) if hasattr(value, "to_tuple") else made
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(
                *(self.fed(item, _joined(place, key), feeds) for key, item in zip(value._fields, value, strict=True))
            )
        if isinstance(value, (list, tuple)):
            return type(value)(self.fed(item, _joined(place, index), feeds) for index, item in enumerate(value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return dataclasses.replace(
                value, **{name: self.fed(getattr(value, name), _joined(place, name), feeds) for name in names}
            )
        return value

    def _in_place_of(self, own: torch.Tensor, feed: Feed) -> torch.Tensor:
        found = self._values.joined(feed)
        if found is None or found.numel() != own.numel() or found.is_complex() != own.is_complex():
            return own
        if found.is_floating_point() != own.is_floating_point():
            return own
        return found.reshape(own.shape).to(own)


def _joined(place: str, key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{place}.{key}" if place else key
    return f"{place}[{key!r}]"


Fed = Callable[[Callable[..., Any], FedCall, tuple[Any, ...], Mapping[str, Any]], Any]


@contextmanager
def shadowed(model: nn.Module, feeder: Feeder, around: Callable[[nn.Module], Fed]) -> Generator[None]:
    """While entered, calls of `model`'s modules for which there is something to feed go through `around(module)`."""
    with ExitStack() as stack:
        for module, (path, *_aliases) in module_paths(eager_model(model)).items():
            stack.callback(_shadow(module, path, feeder, around(module)))
        yield


def _shadow(module: nn.Module, path: str, feeder: Feeder, fed: Fed) -> Callable[[], None]:
    original = module.forward
    had_own = "forward" in module.__dict__

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        call = feeder.next_call(path)
        return original(*args, **kwargs) if call is None else fed(original, call, args, kwargs)

    def restore() -> None:
        if had_own:
            module.__dict__["forward"] = original
        else:
            del module.__dict__["forward"]

    module.__dict__["forward"] = forward
    return restore


def with_inputs(feeder: Feeder) -> Callable[[nn.Module], Fed]:
    """Gives a call what the reference's was given."""

    def around(module: nn.Module) -> Fed:
        names = positional_names(type(module).forward)[1:]
        fixed = [name for name in names if not name.startswith("*")]
        rest = next((name for name in names if name.startswith("*")), "*args")

        def fed(original: Callable[..., Any], call: FedCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            with _plain_torch():
                places = [fixed[i] if i < len(fixed) else f"{rest}[{i - len(fixed)}]" for i in range(len(args))]
                args = tuple(feeder.fed(value, place, call.inputs) for value, place in zip(args, places, strict=True))
                kwargs = {name: feeder.fed(value, name, call.inputs) for name, value in kwargs.items()}
            return original(*args, **kwargs)

        return fed

    return around


def with_outputs(feeder: Feeder) -> Callable[[nn.Module], Fed]:
    """Hands on what the reference's call returned."""

    def around(_module: nn.Module) -> Fed:
        def fed(original: Callable[..., Any], call: FedCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            result = original(*args, **kwargs)
            with _plain_torch():
                return feeder.fed(result, "", call.outputs)

        return fed

    return around


@contextmanager
def _plain_torch() -> Generator[None]:
    """Our own torch calls are none of the model's."""
    with torch.no_grad(), torch._C.DisableTorchFunction():
        yield


def replay(feeding: Feeding) -> None:
    """Run the port on the reference's tensors and write the trace to `feeding.folder`.

    Raises:
        UsageError, TraceError, UserCodeError: as tracing does.
    """
    values = RecordedValues(read_trace(Path(feeding.reference)))
    prepared = prepare(feeding.target, Path(feeding.root), None, lambda _doing: None).prepared
    info = model_info(prepared.model, target=feeding.target, recipe=prepared.source, part="", seed=prepared.seed)
    seed_everything(prepared.seed)
    model = prepared.model
    inner, outer = Feeder(values, feeding.calls), Feeder(values, feeding.calls)
    # The record stands between the two: it sees what the port's own code gives to a call, and what the call returns.
    with (
        shadowed(model, inner, with_inputs(inner)),
        record(model, Path(feeding.folder), info, Recording()),
        shadowed(model, outer, with_outputs(outer)),
    ):
        model(*prepared.args, **prepared.kwargs)


def main() -> None:
    """One job on standard input; on standard output nothing, or one sentence that says what went wrong."""
    feeding = Feeding.from_json(sys.stdin.readline())
    end_with_parent()
    output = own_standard_output()
    try:
        replay(feeding)
    except (UsageError, TraceError) as error:
        output.write(str(error))
    except UserCodeError as error:
        output.write(f"{feeding.target} raised when {error.doing}: {described(error.__cause__ or error)}")
    except RAISED as error:  # whatever the model raises on the reference's inputs is the answer
        place = f" ({place_of(error)})" if place_of(error) else ""
        output.write(f"the port raised on the reference's inputs: {described(error)}{place}")
    output.flush()


if __name__ == "__main__":
    main()
