"""What a trace holds: the one definition that the tracer writes and the diff reads. Standard library only.

On disk a trace is one folder:

======================================  ============================================================================
`trace.jsonl`                           the record: one JSON object a line, appended while the forward runs
                                        (`lines.py` has each line's fields, `reading.py` reads it)
`tensors-00000.safetensors`, `-00001…`  values and norm profiles, packed in the order in which they were seen
`<Class>_debug_tree_SUMMARY.json`,      what transformers' own debugger writes, for the eye and for a text diff
`<Class>_debug_tree_FULL_TENSORS.json`  (absent when the run was killed)
`rank-00001/ …`                         under `torchrun`: the same folder again, once for each rank above 0
======================================  ============================================================================

A killed run leaves a record without its last lines. Everything before them stands: values are found by the byte
ranges in `trace.jsonl`, never through a header of the tensor file, which is only filled in when the file is closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

FORMAT_VERSION = 2
RECORD_FILE = "trace.jsonl"
TENSOR_FILE = "tensors-{number:05d}.safetensors"
TENSOR_FILES = "tensors-*.safetensors"
RANK_FOLDER = "rank-{rank:05d}"
SUMMARY_SUFFIX = "_debug_tree_SUMMARY.json"
FULL_SUFFIX = "_debug_tree_FULL_TENSORS.json"


class TraceError(ValueError):
    """A trace that cannot be read or written: one sentence that names the file and the remedy."""


class Statistics(NamedTuple):
    """Of one tensor's elements, computed in float64 over the *finite* ones (complex: of the modulus, bool: of 0 and
    1).

    `std` is the unbiased one (n - 1), as `torch.Tensor.std`; NaN for fewer than two finite elements, and every other
    float is NaN where no element is finite. The four counts are over all elements.
    """

    mean: float
    std: float
    min: float
    max: float
    absmax: float
    l2: float
    zeros: int
    nans: int
    positive_infinities: int
    negative_infinities: int


class Data(NamedTuple):
    """Where values lie: bytes `start` to `stop` of `file`, little endian, row major, in the dtype of whoever refers
    to it.

    `file` is relative to the folder of the trace. Traces of transformers' own debugger have one safetensors file a
    tensor; there `key` names the entry and `start`, `stop` are -1: they stand in that file's header.
    """

    file: str
    start: int
    stop: int
    key: str = ""


class Piece(NamedTuple):
    """One rank's part of a sharded tensor: its values begin at `start` (an index a dimension) of the whole."""

    rank: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    data: Data | None


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as it was at one moment.

    Two slots with the same `id` held the same values: nothing wrote to the tensor in between. Two tensors with the
    same `storage` share memory (views, in-place results), whether or not their values are equal.
    """

    id: int
    shape: tuple[int, ...]
    dtype: str
    """As torch names it, without `torch.`: `float32`, `bfloat16`, `float8_e4m3fn`, `int64`, `bool`, `complex64` …"""
    stride: tuple[int, ...]
    device: str
    storage: int
    statistics: Statistics | None
    """None for an empty tensor and for one without values (meta)."""
    data: Data | None = None
    """The values, row major whatever `stride` says; None where they were not kept, and `omitted` says why."""
    token_norms: Data | None = None
    """float32, `shape[:-1]` values: the L2 norm over the last dimension."""
    channel_norms: Data | None = None
    """float32, `shape[-1]` values: the L2 norm over all dimensions but the last."""
    omitted: str = ""
    """`stats only`, `filtered`, `over the byte limit`, `meta`, `not strided` …"""
    placement: str = ""
    """Of a DTensor: `Shard(dim=0) on (2,) as tp`; `shape` is then the whole tensor's once ranks are merged."""
    pieces: tuple[Piece, ...] = ()
    """Of a tensor that is sharded over ranks: who holds what. `data` is None then."""


class Slot(NamedTuple):
    """One leaf of a module's arguments or results.

    `place` is a path from the argument's name as the forward's signature has it (`hidden_states`,
    `position_embeddings[1]`, `past_key_values.layers[0].keys`); extra positional arguments are `*args[0]`. A result
    that is one tensor has the place ``""``; others `[0]`, `[1][0]`, `last_hidden_state`, `hidden_states[3]`. Of
    `tensor` and `text` one is set. `text` is the value's `repr`, memory addresses replaced: `None`, `False`, `0.125`.
    """

    place: str
    tensor: Tensor | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a class's forward is defined; the class itself begins at `class_line`. Lines count from 1."""

    file: str
    line: int
    class_line: int


@dataclass(frozen=True, slots=True)
class Error:
    """What a call raised. `traceback` holds the frames in the user's and the model's code, innermost last."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one module's forward, or of one tapped function inside it (`is_function`).

    A function's `path` is its module's with the function's name and parentheses added
    (`LlamaModel.layers.0.self_attn.softmax()`), its `class_name` the function's name; it has inputs and outputs like
    a module.
    """

    index: int
    """Place in the order of entering, from 0, over all forwards of the trace; a parent comes before its children."""
    parent: int | None
    """Index of the call that this one ran inside; None for the root."""
    forward: int
    """Which forward of the root it belongs to, from 0."""
    path: str
    """Module path from the root class: `LlamaForCausalLM.model.layers.0.mlp`; the root's is its class."""
    class_name: str
    number: int
    """Which call of this path it is within its forward, from 0."""
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...] = ()
    seconds: float | None = None
    """None for a call that had not returned when the record ended."""
    error: Error | None = None
    """Set on every call that the exception passed through; the one that raised is the last of them."""
    is_function: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """One module object, listed before the first forward."""

    path: str
    aliases: tuple[str, ...]
    """Further paths at which the same object hangs (shared modules)."""
    class_name: str
    qualified_name: str
    """`transformers.models.llama.modeling_llama.LlamaMLP`."""
    source: Source | None
    """None for a forward written in C or made in an interactive session."""
    training: bool
    attributes: Mapping[str, bool | int | float | str | None]
    """Plain public attributes: `variance_epsilon`, `scaling`, `num_heads`, `sliding_window` …"""
    description: str = ""
    """`extra_repr()`."""


class Fingerprint(NamedTuple):
    """Three 64-bit hashes of a tensor's values (as float64 bits, so that an exact cast leaves them alone), 16 hex
    digits each.

    `values` does not depend on order: it is equal for a transposed, permuted, reshaped or re-interleaved tensor, and
    it adds up over the parts of a concatenated one (see `values_of_joined`). `ordered` is of the values with their
    row-major places: equal for equal values in equal order, whatever the shape. `transposed` is `ordered` of the tensor
    with its last two dimensions exchanged (the same as `ordered` below two dimensions).
    """

    values: str
    ordered: str
    transposed: str


def values_of_joined(parts: Iterable[str]) -> str:
    """`Fingerprint.values` of tensors that are concatenated: each half (8 digits) is the parts' sum modulo 2**32."""
    upper, lower = 0, 0
    for part in parts:
        upper, lower = upper + int(part[:8], 16), lower + int(part[8:], 16)
    return f"{upper % (1 << 32):08x}{lower % (1 << 32):08x}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or buffer as it was before the first forward."""

    name: str
    """From the root class: `LlamaModel.layers.0.mlp.up_proj.weight`."""
    aliases: tuple[str, ...]
    """Further names of the same tensor (tied weights)."""
    is_buffer: bool
    is_persistent: bool
    tensor: Tensor
    fingerprint: Fingerprint | None
    """None for a tensor without values (meta)."""


@dataclass(frozen=True, slots=True)
class Forward:
    """One call of the root: `status` is `complete`, `raised` or `unfinished` (the record ends inside it)."""

    index: int
    inputs_hash: str
    """16 hex digits over every tensor and scalar of the root's arguments; equal means bit-equal inputs."""
    status: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Info:
    """What is known once a trace: the record's first line."""

    class_name: str
    created: str
    """UTC, ISO 8601 to the second: `2026-11-30T19:34:02Z`."""
    target: str = ""
    """What the user asked for, as `twinlens trace` takes it; empty for a context used in the user's own script."""
    recipe: str = ""
    """Where model and inputs come from: `file.py::function`, `model tester …`, `shrunk config of …`."""
    part: str = ""
    """For a class that is only a part of the model: that class; the record then holds its calls and what they ran."""
    seed: int | None = None
    dtype: str = ""
    """Of the model's floating parameters; several are joined by `, `."""
    device: str = ""
    attention_implementation: str = ""
    training: bool = False
    config: Mapping[str, object] = field(default_factory=dict)
    """The model's `config.to_dict()` where it has one: JSON values only."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """`python`, `twinlens`, `torch`, and `transformers` and `safetensors` where they are imported."""
    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """One traced run, read back."""

    folder: Path
    info: Info
    modules: tuple[Module, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    forwards: tuple[Forward, ...] = ()
    calls: tuple[Call, ...] = ()
    """In the order of entering: `calls[i].index == i`."""
    is_complete: bool = False
    """False when the record ends without its last line: the run was killed or is still going."""
    ranks: tuple[Trace, ...] = ()
    """Under `torchrun`: each rank's own trace, rank 0 first. The trace itself is then the merged one."""
