"""Merge what the ranks of one `torchrun` wrote into one trace. Standard library only.

Calls, modules and parameters are rank 0's. A sharded tensor (DTensor) becomes the whole one: its statistics are
combined from the shards', its `pieces` say which rank holds which part. A replicated one is rank 0's. A plain tensor
is rank 0's too, whatever the other ranks held: theirs stand in `Trace.ranks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from twinlens.tracing.record import RANK_FOLDER, RECORD_FILE, Call, Data, Piece, Slot, Statistics, Tensor, Trace


def rank_folders(folder: Path) -> list[Path]:
    """The folders inside `folder` that ranks above 0 wrote, in the order of their ranks."""
    pattern = RANK_FOLDER.format(rank=0).replace("0", "[0-9]")
    return sorted(found.parent for found in folder.glob(f"{pattern}/{RECORD_FILE}"))


def merge(ranks: Sequence[Trace]) -> Trace:
    """One trace from each rank's own; `ranks[0]` is rank 0's."""
    first = ranks[0]
    shards = _shards_of_first_rank(ranks)
    whole: dict[int, Tensor] = {tensor_id: _whole(parts) for tensor_id, parts in shards.items()}

    def merged(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
        return tuple(
            slot if slot.tensor is None else slot._replace(tensor=whole.get(slot.tensor.id, slot.tensor))
            for slot in slots
        )

    return replace(
        first,
        calls=tuple(replace(call, inputs=merged(call.inputs), outputs=merged(call.outputs)) for call in first.calls),
        parameters=tuple(
            replace(parameter, tensor=whole.get(parameter.tensor.id, parameter.tensor), fingerprint=None)
            if parameter.tensor.placement
            else parameter
            for parameter in first.parameters
        ),
        is_complete=all(rank.is_complete for rank in ranks),
        ranks=tuple(ranks),
    )


def _shards_of_first_rank(ranks: Sequence[Trace]) -> dict[int, list[Tensor]]:
    """By the id that rank 0 knows a sharded tensor under: that tensor as each rank recorded it."""
    shards: dict[int, list[Tensor]] = {}
    places = {place: tensor for place, tensor in _placed_tensors(ranks[0]) if tensor.placement}
    for tensor in places.values():
        shards[tensor.id] = [tensor]
    for rank in ranks[1:]:
        seen: set[int] = set()
        for place, tensor in _placed_tensors(rank):
            own = places.get(place)
            if own is not None and tensor.placement and own.id not in seen:
                seen.add(own.id)
                shards[own.id].append(_moved(tensor, rank.folder.name))
    return shards


def _placed_tensors(trace: Trace) -> Iterator[tuple[tuple[object, ...], Tensor]]:
    for parameter in trace.parameters:
        yield ("parameter", parameter.name), parameter.tensor
    for call in trace.calls:
        yield from _call_tensors(call)


def _call_tensors(call: Call) -> Iterator[tuple[tuple[object, ...], Tensor]]:
    for side, slots in (("inputs", call.inputs), ("outputs", call.outputs)):
        for slot in slots:
            if slot.tensor is not None:
                yield (call.forward, call.path, call.number, side, slot.place), slot.tensor


def _moved(tensor: Tensor, folder: str) -> Tensor:
    """`tensor` with its data named from the folder above `folder`."""

    def moved(data: Data | None) -> Data | None:
        return None if data is None else data._replace(file=f"{folder}/{data.file}")

    return replace(tensor, pieces=tuple(piece._replace(data=moved(piece.data)) for piece in tensor.pieces))


def _whole(shards: Sequence[Tensor]) -> Tensor:
    """The whole of a tensor from its shards; of equal parts that several ranks hold, the first is kept."""
    first = shards[0]
    if "Partial" in first.placement:  # each rank holds a summand of every element
        return replace(first, pieces=tuple(piece for shard in shards for piece in shard.pieces))
    parts: dict[tuple[int, ...], tuple[Piece, Statistics | None]] = {}
    for shard in shards:
        for piece in shard.pieces:
            parts.setdefault(piece.start, (piece, shard.statistics))
    pieces = [piece for piece, _ in parts.values()]
    if len(pieces) == 1 and pieces[0].shape == first.shape:
        return replace(first, data=pieces[0].data, pieces=())
    statistics = combine((math.prod(piece.shape), own) for piece, own in parts.values() if own is not None)
    return replace(first, pieces=tuple(pieces), statistics=statistics, token_norms=None, channel_norms=None)


def combine(parts: Iterable[tuple[int, Statistics]]) -> Statistics | None:
    """Statistics of a concatenation, from (elements, statistics) of its parts; None when there are none.

    Means and squared deviations are added pairwise (Chan, Golub, LeVeque 1979).
    """
    total: Statistics | None = None
    finite = 0
    for elements, part in parts:
        part_finite = elements - part.nans - part.positive_infinities - part.negative_infinities
        total = part if total is None else _add(finite, total, part_finite, part)
        finite += part_finite
    return total


def _add(n: int, a: Statistics, m: int, b: Statistics) -> Statistics:
    counts = (a.zeros + b.zeros, a.nans + b.nans, *(x + y for x, y in zip(a[8:], b[8:], strict=True)))
    if not n or not m:
        return Statistics(*(a if n else b)[:6], *counts)
    gap = b.mean - a.mean
    squares = sum(part.std**2 * (size - 1) for size, part in ((n, a), (m, b)) if size > 1)
    squares += gap**2 * n * m / (n + m)
    return Statistics(
        a.mean + gap * m / (n + m),
        math.sqrt(squares / (n + m - 1)),
        min(a.min, b.min),
        max(a.max, b.max),
        max(a.absmax, b.absmax),
        math.hypot(a.l2, b.l2),
        *counts,
    )
