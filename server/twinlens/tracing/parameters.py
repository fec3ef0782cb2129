"""A model's parameters and buffers in the record: named when the trace begins, read while the forward runs.

What a forward may write to, and what is small, is read before it begins. A large parameter of the CPU is read in
threads beside it: its line is written without statistics and fingerprint at first, so that a killed run still names it,
and once more with them at the end. One that was written to meanwhile keeps its first line: what it held is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import nn

from twinlens.tracing.fingerprint import fingerprint
from twinlens.tracing.identity import local_part, why_without_values
from twinlens.tracing.record import Fingerprint, Parameter, Statistics
from twinlens.tracing.statistics import statistics
from twinlens.tracing.tensors import TensorLog

_LARGE = 1 << 16
"""Elements from which on a parameter is read beside the forward."""


class _Named(NamedTuple):
    tensor: torch.Tensor
    names: tuple[str, ...]
    is_persistent: bool


class _Read(NamedTuple):
    statistics: Statistics | None
    fingerprint: Fingerprint | None


class ParameterLog:
    """Logs the parameters of one model; `write` takes each line's `Parameter`."""

    def __init__(self, tensors: TensorLog, write: Callable[[Parameter], None], *, stats_only: bool) -> None:
        self._tensors = tensors
        self._write = write
        self._omitted = "stats only" if stats_only else ""
        self._pool = ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="twinlens")
        self._open: list[tuple[torch.Tensor, Parameter, Future[_Read | None]]] = []
        self._open_ids: set[int] = set()

    def begin(self, model: nn.Module, root: str) -> None:
        """Write a line for each, in the model's order; names begin with `root`."""
        named = list(_named(model, root))
        now = {id(item.tensor): self._pool.submit(_read, item.tensor) for item in named if not _may_be_read_later(item)}
        later: list[tuple[torch.Tensor, Parameter]] = []
        for item in named:
            known = now.get(id(item.tensor))
            read = _Read(None, None) if known is None else known.result()
            parameter = self._logged(item, read)
            self._write(parameter)
            if known is None:
                later.append((item.tensor, parameter))
        self._open = [
            (tensor, parameter, self._pool.submit(self._read_as_logged, tensor)) for tensor, parameter in later
        ]
        self._open_ids = {id(tensor) for tensor, _parameter in later}

    def is_open(self, tensor: torch.Tensor) -> bool:
        """Whether its last line has yet to be written."""
        return id(tensor) in self._open_ids

    def finish(self) -> None:
        """Wait for what is being read, and write its lines."""
        for tensor, parameter, future in self._open:
            read = None if future.cancelled() else future.result()
            if read is not None:
                record = self._tensors.with_statistics(tensor, parameter.tensor, read.statistics)
                self._write(replace(parameter, tensor=record, fingerprint=read.fingerprint))
        self._open, self._open_ids = [], set()

    def cancel(self) -> None:
        """Begin to read no more; `finish` then writes what was read."""
        for _tensor, _parameter, future in self._open:
            future.cancel()

    def close(self) -> None:
        self.finish()
        self._pool.shutdown(cancel_futures=True)

    def _logged(self, item: _Named, read: _Read) -> Parameter:
        name, *others = item.names
        record = self._tensors.log_parameter(item.tensor, name, self._omitted, read.statistics)
        return Parameter(
            name=name,
            aliases=tuple(others),
            is_buffer=not isinstance(item.tensor, nn.Parameter),
            is_persistent=item.is_persistent,
            tensor=record,
            fingerprint=read.fingerprint,
        )

    def _read_as_logged(self, tensor: torch.Tensor) -> _Read | None:
        """None where the tensor was written to since it was logged."""
        read = _read(tensor)
        return read if self._tensors.is_as_logged(tensor) else None


def _named(model: nn.Module, root: str) -> Iterator[_Named]:
    aliases: dict[torch.Tensor, list[str]] = {}
    for name, tensor in (
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ):
        aliases.setdefault(tensor, []).append(f"{root}.{name}")
    persistent = set(model.state_dict(keep_vars=True).values())
    for tensor, names in aliases.items():
        yield _Named(tensor, tuple(names), tensor in persistent)


def _may_be_read_later(item: _Named) -> bool:
    tensor = item.tensor
    return (
        isinstance(tensor, nn.Parameter)
        and tensor.numel() >= _LARGE
        and tensor.device.type == "cpu"
        and local_part(tensor) is tensor
        and not why_without_values(tensor)
        and not tensor.is_inference()
        and tensor.is_contiguous()
    )


def _read(tensor: torch.Tensor) -> _Read:
    """What there is to know of a parameter's values, in whichever thread."""
    local = local_part(tensor)
    if why_without_values(local):
        return _Read(None, None)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        found = statistics(local)
        is_plain = found is not None and found.zeros == found.nans == 0
        return _Read(found, fingerprint(local, is_plain=is_plain))
