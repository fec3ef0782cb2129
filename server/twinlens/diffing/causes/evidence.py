"""What a cause is tried on: a tensor that differs, the code that made it on both sides, and all that code could see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from twinlens.diffing.nodes import Node, Side
from twinlens.diffing.noise import Noise
from twinlens.diffing.points import Comparison, PairedCall, Point
from twinlens.diffing.values import Array
from twinlens.tracing.record import Call, Module, Tensor

ROWS = 512
"""How many tokens of a tensor are looked at."""
SAMPLED = 8192
"""How many elements of a tensor are looked at where places do not matter."""
MOST_SEEN = 14
"""How many of the tensors that a frame's code saw last are tried as terms."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that explains an origin. `residual` is the relative error that is left when it is put right."""

    code: str
    message: str
    residual: float
    change: str = ""
    """What to change, one sentence."""
    calls: tuple[int | None, int | None] = (None, None)
    """The reference's and the port's to name instead of the origin's, where the cause lies elsewhere than it shows."""
    effect: float = 1.0
    """The relative change that putting this right alone makes: of several causes the one with the largest is named
    first."""


class Identity(NamedTuple):
    """A tensor of the reference by its id, or a part of it: `first` and `second` half, `even` and `odd` columns."""

    tensor: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A tensor that a frame's code could see, and as what: an argument or what a call returned."""

    tensor: Tensor
    label: str
    call: int | None
    """The call that returned it; None for an argument of the frame and for what the frame made itself."""


@dataclass(frozen=True)
class View:
    """One side of a site."""

    side: Side
    frame: int
    tensor: Tensor
    """What was made there."""
    time: int
    substitutes: Mapping[int, Callable[[], Array]] = field(default_factory=dict)
    """By tensor id: what a replay gave to the code in its place."""
    less: Tensor | None = None
    """What is taken off the target, where one looks at the rest of a sum."""

    @property
    def call(self) -> Call:
        return self.side.trace.calls[self.frame]

    @property
    def node(self) -> Node:
        return self.side.nodes[self.call.path]

    @property
    def module(self) -> Module | None:
        return self.side.modules.get(self.call.path)

    @property
    def is_leaf(self) -> bool:
        """Whether the frame calls no module."""
        trace = self.side.trace
        return all(trace.calls[child].is_function for child in self.side.flow.children[self.frame])

    @cached_property
    def seen(self) -> tuple[Seen, ...]:
        """Floating tensors with values that the frame's code could see before it made the tensor, in that order."""
        found: dict[int, Seen] = {}
        for item in seen_before(self.side, self.frame, self.time):
            is_earlier = self.side.flow.births[item.tensor.id].time < self.time
            if is_earlier and is_floating(item.tensor) and self.side.values.has(item.tensor):
                known = found.get(item.tensor.id)
                if known is None or (known.call is None and item.call is not None):
                    found[item.tensor.id] = item
        return tuple(found.values())

    def array(self, tensor: Tensor) -> Array:
        """The values that the code had: in a replay, the reference's for what it was given."""
        substitute = self.substitutes.get(tensor.id) if tensor.id != self.tensor.id else None
        return self.side.values.array(tensor) if substitute is None else substitute().reshape(tensor.shape)

    def target(self) -> Array:
        whole = self.side.values.array(self.tensor)
        return whole if self.less is None else whole - self.array(self.less).reshape(whole.shape)

    def number(self, *names: str) -> float | None:
        """A number among the module's own attributes, by the first of `names` that it has."""
        attributes = self.module.attributes if self.module else {}
        for name in names:
            value = attributes.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
        return None


@dataclass(frozen=True)
class Site:
    """Where something differs: both sides, the point that shows it, and how much is noise there."""

    reference: View
    port: View
    point: Point
    seen_by: PairedCall
    noise: Noise
    comparison: Comparison
    is_clean: bool = True
    """Whether all that the code could see agrees: what it made may then be compared across the two sides."""
    columns: Array | None = None
    """Of a port's module that is one of several: the reference's columns that it stands for."""
    port_columns: Array | None = None
    """Of a reference's module that is one of several: the port's columns that stand for it."""
    partners: Mapping[Identity, Identity] = field(repr=False, default_factory=dict)
    """By the port's tensor: the reference's that it stands for."""

    @property
    def views(self) -> tuple[View, View]:
        return self.reference, self.port

    @property
    def is_comparable(self) -> bool:
        """Whether both tensors' values were kept."""
        return all(view.side.values.has(view.tensor) for view in self.views)

    @property
    def error(self) -> float:
        return self.point.difference.relative

    @property
    def is_of_partners(self) -> bool:
        """Whether the two frames' modules are paired with each other."""
        pair = self.comparison.alignment.by_port.get(self.port.call.path)
        return pair is not None and self.reference.call.path in pair.reference

    def identity(self, view: View, tensor: Tensor, part: str = "") -> Identity:
        """What a tensor, or a part of it, is known as on both sides; of one without a partner, an id below 0."""
        own = Identity(tensor.id, part)
        if view is self.reference:
            return own
        tensor = _before_dropout(view, tensor)
        own = Identity(tensor.id, part)
        whole = self.partners.get(Identity(tensor.id))
        known = self.partners.get(own) or (Identity(whole.tensor, part) if whole and not whole.part else None)
        return known or Identity(-1 - tensor.id, part)

    @property
    def fit(self) -> float:
        """The residual up to which a formula counts as describing recorded tensors exactly."""
        return max(2 * self.noise.unit, 1e-5)


def _before_dropout(view: View, tensor: Tensor) -> Tensor:
    """What went into a dropout stands for what came out of it."""
    birth = view.side.flow.births[tensor.id]
    if birth.side != "outputs" or view.side.node_of(birth.call).kind != "dropout":
        return tensor
    given = view.side.trace.calls[birth.call].inputs
    return next((slot.tensor for slot in given if slot.tensor is not None), tensor)


def seen_before(side: Side, frame: int, time: int) -> Iterator[Seen]:
    """Every tensor that the code of `frame` could see before `time`."""
    flow, calls = side.flow, side.trace.calls
    for slot in calls[frame].inputs:
        if slot.tensor is not None:
            yield Seen(slot.tensor, slot.place, None)
    for child in flow.children[frame]:
        if flow.entered[child] > time:
            break
        call = calls[child]
        for slot in call.inputs:
            if slot.tensor is not None and flow.births[slot.tensor.id].time < time:
                yield Seen(slot.tensor, f"the input of {short(call.path)}", None)
        if flow.left[child] < time:
            for slot in call.outputs:
                if slot.tensor is not None:
                    yield Seen(slot.tensor, short(call.path), child)


def short(path: str) -> str:
    """The last word of a path that is no number: `q_proj`, `layers.0`."""
    steps = path.split(".")
    return ".".join(steps[-2:]) if steps[-1].isdigit() and len(steps) > 1 else steps[-1]


def is_floating(tensor: Tensor) -> bool:
    return tensor.dtype.startswith(("float", "bfloat"))


def tokens(array: Array) -> Array:
    """Rows of the last dimension, (tokens, width), float64; at most `ROWS`, spread evenly."""
    rows = array.reshape(-1, array.shape[-1])
    if len(rows) > ROWS:
        rows = rows[evenly_spaced(len(rows), ROWS)]
    return np.asarray(rows, np.float64)


def spread(values: Array, shape: tuple[int, ...]) -> Array | None:
    """`values` as a tensor of `shape`: with other sizes in front, or repeated along those that it lacks."""
    if values.size == math.prod(shape):
        return values.reshape(shape)
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        return None


def sampled(values: Array) -> Array:
    """At most `SAMPLED` elements, spread evenly, float64."""
    flat = values.reshape(-1)
    return np.asarray(flat[:: max(1, flat.size // SAMPLED)], np.float64)


def evenly_spaced(count: int, wanted: int) -> Array:
    """At most `wanted` of the places 0 … `count` - 1, int64, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).astype(np.int64))


def residual(prediction: Array, target: Array) -> float:
    """|prediction - target| / |target| over finite places; `inf` where most are not, or where shapes differ."""
    if prediction.shape != target.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        ok = np.isfinite(prediction) & np.isfinite(target)
        if not ok.any() or not ok.mean() > 0.5:
            return float("inf")
        p, t = prediction[ok], target[ok]
        size = float(np.sqrt(np.sum(np.abs(t) ** 2, dtype=np.float64)))
        gap = float(np.sqrt(np.sum(np.abs(p - t) ** 2, dtype=np.float64)))
    return gap / size if size else (0.0 if gap == 0 else float("inf"))


def scale_of(target: Array, source: Array) -> float:
    """The least-squares factor a of target = a source."""
    with np.errstate(all="ignore"):
        ok = np.isfinite(target) & np.isfinite(source)
        t, s = target[ok], source[ok]
        size = float(np.sum(s * s))
    return float(np.sum(t * s)) / size if size else 0.0


def nice(value: float) -> str:
    """A number as a person writes it: 1e-05, 8, 0.125, 55.4."""
    return f"{value:.4g}"


def parameters_of(view: View) -> dict[str, Array]:
    """The frame's own parameters with values, by their last name."""
    return {
        item.name.rpartition(".")[2]: view.side.values.array(item.tensor)
        for item in view.node.parameters
        if not item.is_buffer and view.side.values.has(item.tensor)
    }
