"""Know a tensor again that was seen before, and that nothing wrote to since."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from twinlens.tracing.packed import dense, raw_bytes

META = "meta"
NOT_STRIDED = "not strided"
TRANSFORMED = "inside a function transform"

_SAMPLED = 16
_WORDS = (torch.float32, torch.int32, torch.float64, torch.int64)
_weak_tensor_reference: Any = vars(torch._C)["_WeakTensorRef"]
_Value = TypeVar("_Value")


class _Seen(NamedTuple):
    """The weak reference keeps a dead tensor's address from being given to another one."""

    reference: Any
    version: int
    state: tuple[int, bytes]
    value: Any


class SeenTensors(Generic[_Value]):
    """Maps a live tensor to a value, for as long as its contents are what they were."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}

    def get(self, tensor: torch.Tensor) -> _Value | None:
        seen = self._seen.get(tensor._cdata)
        if seen is None or seen.version != _version(tensor) or seen.state != _state(tensor):
            return None
        return seen.value

    def put(self, tensor: torch.Tensor, value: _Value) -> None:
        version = _version(tensor)
        if version >= 0 and local_part(tensor).is_contiguous():
            self._seen[tensor._cdata] = _Seen(_weak_tensor_reference(tensor), version, _state(tensor), value)

    def update(self, tensor: torch.Tensor, value: _Value) -> None:
        """Another value for a tensor that is known, and as it was."""
        seen = self._seen.get(tensor._cdata)
        if seen is not None:
            self._seen[tensor._cdata] = seen._replace(value=value)


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """A DTensor's part on this rank; any other tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)


def why_without_values(tensor: torch.Tensor) -> str:
    """Why `tensor`, a local part, has no values that could be read; empty if it has."""
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return TRANSFORMED
    if tensor.device.type == "meta" or isinstance(tensor, FakeTensor):
        return META
    if tensor.layout is not torch.strided or is_traceable_wrapper_subclass(tensor):
        return NOT_STRIDED
    return ""


def _version(tensor: torch.Tensor) -> int:
    """How often torch knows the tensor to have been written to; -1 where nobody counts."""
    local = local_part(tensor)
    return -1 if local.is_inference() or why_without_values(local) else local._version


def _state(tensor: torch.Tensor) -> tuple[int, bytes]:
    """The sum of a contiguous tensor's memory in words of 8 bytes, and some of its bytes, the last ones among them:
    kernels from outside torch write without being counted by `_version`."""
    local = local_part(tensor).detach().resolve_neg()
    if not local.is_contiguous():
        return 0, b""
    if local.device.type != "cpu":
        flat = local.reshape(-1)
        sampled = raw_bytes(dense(flat[:: flat.numel() // _SAMPLED + 1])).tobytes()
        return (int(flat.view(torch.int32).sum()) if local.dtype in _WORDS else 0), sampled
    memory = raw_bytes(local)
    words = len(memory) // 8
    total = int(torch.frombuffer(memory, dtype=torch.int64, count=words).sum()) if words else 0
    return total, memory[:: len(memory) // _SAMPLED | 1].tobytes() + memory[8 * words :].tobytes()
