"""Attention as a trace shows it: scores, what they block, probabilities and context, from `softmax` or from
`scaled_dot_product_attention`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinlens.diffing.causes.evidence import View, evenly_spaced, is_floating
from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Call, Tensor

BLOCKED = -5e3
"""A score below it takes part in no softmax; masks add -10,000 or far less."""
_MOST_SCORES = 4_000_000
_FUNCTIONS = ("softmax", "scaled_dot_product_attention")


@dataclass(frozen=True, slots=True)
class Attention:
    """One side's attention over some batch entries and queries. Shapes: B batch, H heads, Q queries, K keys, D head."""

    call: int
    """The call of the function."""
    scores: Array
    """(B, H, Q, K), masked; float64."""
    probabilities: Array
    """(B, H, Q, K)."""
    queries: Array
    """Places of the queries that were taken, (Q,)."""
    query_count: int
    """How many queries there are in all."""
    output: Array | None
    """(B, H, Q, D): what was returned by `scaled_dot_product_attention`."""
    scale: float | None

    @property
    def blocked(self) -> Array:
        """(B, H, Q, K): what takes no part; NaN counts as that."""
        return np.asarray(~(self.scores > BLOCKED))

    @property
    def heads(self) -> int:
        return self.scores.shape[1]


def attention_call(view: View) -> int | None:
    """The function call that the site is about: the one given the tensor, else the last one before it was made."""
    trace, flow = view.side.trace, view.side.flow
    calls = [child for child in _functions(view) if _scores_shape(trace.calls[child]) is not None]
    given = [
        child
        for child in calls
        if any(slot.tensor is not None and slot.tensor.id == view.tensor.id for slot in trace.calls[child].inputs)
    ]
    if given:
        return given[0]
    before = [child for child in calls if flow.left[child] <= view.time]
    return before[-1] if before else (calls[0] if calls else None)


def _functions(view: View) -> Iterator[int]:
    trace = view.side.trace
    for child in view.side.flow.children[view.frame]:
        if trace.calls[child].is_function and trace.calls[child].class_name in _FUNCTIONS:
            yield child


def _argument(call: Call, name: str) -> Tensor | None:
    return next((slot.tensor for slot in call.inputs if slot.place == name), None)


def _text(call: Call, name: str) -> str:
    return next((slot.text for slot in call.inputs if slot.place == name), "")


def _scores_shape(call: Call) -> tuple[int, ...] | None:
    """(B, H, Q, K) of the call's scores; None for a softmax over something else."""
    if call.class_name == "softmax":
        scores = _argument(call, "input")
        if scores is None or not is_floating(scores):
            return None
        return _four(scores.shape) if len(scores.shape) >= 3 and scores.shape[-1] > 1 else None
    query, key = _argument(call, "query"), _argument(call, "key")
    if query is None or key is None or len(query.shape) < 3:
        return None
    batch, heads, length, _size = _four(query.shape)
    return batch, heads, length, key.shape[-2]


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """A shape of 3 or more dimensions as one of 4: groups of heads join, a missing batch is 1."""
    if len(shape) == 3:
        return (1, *shape)
    return shape[0], math.prod(shape[1:-2]), shape[-2], shape[-1]


def attention_of(side: Side, call_index: int, heads: int | None = None) -> Attention | None:
    """The attention of a function call; None without its values. `heads` splits a joined batch dimension."""
    call = side.trace.calls[call_index]
    shape = _scores_shape(call)
    if shape is None:
        return None
    if len(_first_tensor(call).shape) == 3 and heads and shape[1] % heads == 0:
        shape = (shape[1] // heads, heads, *shape[2:])
    batches = min(shape[0], max(1, _MOST_SCORES // max(1, math.prod(shape[1:]))))
    room = _MOST_SCORES // max(1, batches * shape[1] * shape[3])
    queries = evenly_spaced(shape[2], max(room, 16))
    chosen = evenly_spaced(shape[0], batches)
    if call.class_name == "softmax":
        return _of_softmax(side, call, shape, chosen, queries)
    return _of_sdpa(side, call, shape, chosen, queries)


def _first_tensor(call: Call) -> Tensor:
    return next(slot.tensor for slot in call.inputs if slot.tensor is not None)


def _of_softmax(side: Side, call: Call, shape: tuple[int, ...], batches: Array, queries: Array) -> Attention | None:
    scores = _argument(call, "input")
    returned = next((slot.tensor for slot in call.outputs if slot.tensor is not None), None)
    if scores is None or returned is None or not side.values.has(scores) or not side.values.has(returned):
        return None

    def chosen(tensor: Tensor) -> Array:
        return np.asarray(side.values.array(tensor).reshape(shape)[batches][:, :, queries], np.float64)

    return Attention(call.index, chosen(scores), chosen(returned), queries, shape[2], None, None)


def _of_sdpa(side: Side, call: Call, shape: tuple[int, ...], batches: Array, queries: Array) -> Attention | None:
    query, key, value = (_argument(call, name) for name in ("query", "key", "value"))
    if query is None or key is None or value is None or not all(map(side.values.has, (query, key, value))):
        return None
    q, k = (np.asarray(side.values.array(tensor).reshape(*_four(tensor.shape)), np.float64) for tensor in (query, key))
    if q.shape[:2] != shape[:2]:
        q, k = (x.reshape(shape[0], -1, *x.shape[2:]) for x in (q, k))
    groups = q.shape[1] // k.shape[1]
    k = np.repeat(k, groups, 1)
    text = _text(call, "scale")
    scale = float(text) if text not in ("", "None") else 1 / math.sqrt(q.shape[-1])
    scores = np.einsum("bhqd,bhkd->bhqk", q[batches][:, :, queries], k[batches]) * scale
    scores = scores + _mask(side, call, shape, batches, queries)
    with np.errstate(all="ignore"):
        exponent = np.exp(scores - scores.max(-1, keepdims=True))
        probabilities = np.nan_to_num(exponent / exponent.sum(-1, keepdims=True))
    returned = next((slot.tensor for slot in call.outputs if slot.tensor is not None), None)
    output = None
    if returned is not None and side.values.has(returned):
        values = side.values.array(returned)
        output = np.asarray(values.reshape(*shape[:3], values.shape[-1])[batches][:, :, queries], np.float64)
    return Attention(call.index, scores, probabilities, queries, shape[2], output, scale)


def _mask(side: Side, call: Call, shape: tuple[int, ...], batches: Array, queries: Array) -> Array:
    mask = _argument(call, "attn_mask")
    total = np.zeros((1, 1, len(queries), shape[3]))
    if _text(call, "is_causal") == "True":
        total = np.where(np.arange(shape[3]) > queries[:, None], -np.inf, 0.0)[None, None]
    if mask is not None and side.values.has(mask):
        values = side.values.array(mask)
        added = np.where(values, 0.0, -np.inf) if values.dtype == bool else np.asarray(values, np.float64)
        added = added.reshape((1,) * (4 - added.ndim) + added.shape) if added.ndim < 4 else added
        whole = np.broadcast_to(added, (added.shape[0], added.shape[1], shape[2], shape[3]))
        whole = whole[:, :, queries] if whole.shape[0] == 1 else whole[batches][:, :, queries]
        total = total + whole
    return total
