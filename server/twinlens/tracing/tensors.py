"""Log tensors as they are at this moment: statistics, norm profiles and, where they are kept, values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from twinlens.tracing.identity import META, NOT_STRIDED, TRANSFORMED, SeenTensors, local_part, why_without_values
from twinlens.tracing.metadata import distributed_rank
from twinlens.tracing.packed import PackedTensors
from twinlens.tracing.record import Data, Piece, Statistics, Tensor
from twinlens.tracing.statistics import Profile, profile

_HEADER_ROOM = 1 << 18
_NEVER_KEPT = (META, NOT_STRIDED, TRANSFORMED)


class TensorLog:
    """Gives each tensor its record, and the same record again while nothing wrote to it."""

    def __init__(self, folder: Path, metadata: Mapping[str, str]) -> None:
        self._packed = PackedTensors(folder, header_room=_HEADER_ROOM, metadata=metadata)
        self._seen: SeenTensors[Tensor] = SeenTensors()
        self._storages: dict[int, tuple[StorageWeakRef, int]] = {}
        self._ids = count()
        self._new: list[Tensor] = []
        self.limit: int | None = None
        """Bytes that may have been written in all when values are; None for any number."""

    def take_new(self) -> list[Tensor]:
        """The tensors that were logged since the last call of this."""
        new, self._new = self._new, []
        return new

    def close(self) -> None:
        self._packed.close()

    def log_parameter(self, tensor: torch.Tensor, name: str, omitted: str, statistics: Statistics | None) -> Tensor:
        """The record of a tensor that was not logged before; it is none of those that `take_new` returns."""
        record = self._first_record(tensor, name, omitted, Profile(statistics, None, None))
        self._seen.put(tensor, record)
        return record

    def is_as_logged(self, tensor: torch.Tensor) -> bool:
        """Whether nothing wrote to the tensor since it was logged."""
        return self._seen.get(tensor) is not None

    def with_statistics(self, tensor: torch.Tensor, record: Tensor, statistics: Statistics | None) -> Tensor:
        """What `record`, that of `tensor`, is from now on."""
        described = replace(record, statistics=statistics)
        self._seen.update(tensor, described)
        return described

    def log(self, tensor: torch.Tensor, name: str, omitted: str) -> Tensor:
        """The record of `tensor` as it is now. Its values are written under `name` unless `omitted` says why not."""
        seen = self._seen.get(tensor)
        if seen is not None and (omitted or not seen.omitted or seen.omitted in _NEVER_KEPT):
            return seen
        if seen is not None:
            record = self._with_values(seen, tensor, name, omitted)
        else:
            record = self._first_record(tensor, name, omitted, None)
        self._new.append(record)
        self._seen.put(tensor, record)
        return record

    def _first_record(self, tensor: torch.Tensor, name: str, omitted: str, described: Profile | None) -> Tensor:
        """`described` is the tensor's `profile`, where that is known."""
        local = local_part(tensor)
        reason = why_without_values(local)
        described = Profile(None, None, None) if reason else described or profile(local)
        record = Tensor(
            id=next(self._ids),
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            stride=tuple(tensor.stride()) if tensor.layout is torch.strided else (),
            device=str(local.device),
            storage=-1 if reason else self._storage_number(local),
            statistics=described.statistics,
            token_norms=self._norms(described.token_norms, f"{name}.token_norms"),
            channel_norms=self._norms(described.channel_norms, f"{name}.channel_norms"),
            omitted=reason,
            placement=_placement(tensor),
        )
        return record if reason else self._with_values(record, tensor, name, omitted)

    def _with_values(self, record: Tensor, tensor: torch.Tensor, name: str, omitted: str) -> Tensor:
        local = local_part(tensor)
        size = local.numel() * local.element_size()
        if not omitted and self.limit is not None and self._packed.bytes_written + size > self.limit:
            omitted = "over the byte limit"
        data = None if omitted else self._packed.append(name, local.int_repr() if local.is_quantized else local)
        if record.placement:
            piece = Piece(distributed_rank()[0], _shard_start(tensor), tuple(local.shape), data)
            return replace(record, pieces=(piece,), omitted=omitted)
        return replace(record, data=data, omitted=omitted)

    def _norms(self, norms: torch.Tensor | None, name: str) -> Data | None:
        return None if norms is None else self._packed.append(name, norms)

    def _storage_number(self, tensor: torch.Tensor) -> int:
        reference = StorageWeakRef(tensor.untyped_storage())
        return self._storages.setdefault(reference.cdata, (reference, len(self._storages)))[1]


def _placement(tensor: torch.Tensor) -> str:
    """Of a DTensor: its placements, mesh shape and the names of the mesh's dimensions."""
    if local_part(tensor) is tensor:
        return ""
    sharded: Any = tensor
    mesh = sharded.device_mesh
    names = f" as {', '.join(mesh.mesh_dim_names)}" if mesh.mesh_dim_names else ""
    return f"{', '.join(map(str, sharded.placements))} on {tuple(mesh.shape)}{names}"


def _shard_start(tensor: Any) -> tuple[int, ...]:
    """Where a DTensor's local part begins in the whole, an index a dimension."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    _shape, start = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return tuple(start)
