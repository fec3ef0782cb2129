"""Weights that differ where outputs agree: the input did not reach what differs."""

from __future__ import annotations

from collections.abc import Container, Iterator

from twinlens.diffing.align import Pair
from twinlens.diffing.columns import matrix_of
from twinlens.diffing.verdict import Judge

_MOST_NAMED = 3


def unseen_weights(judge: Judge) -> Iterator[str]:
    """One note, where there are any: an embedding's rows, say, that no token of the input asks for."""
    others = {pair: name for pair in judge.comparison.alignment.pairs if (name := _other_matrix(judge, pair))}
    names = [others[pair] for pair in _agreeing(judge, others)] if others else []
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        verb = "differ" if len(names) > 1 else "differs"
        yield (
            f"{', '.join(names[:_MOST_NAMED])}{more} {verb} from the reference's though what is made with it agrees: "
            "this input does not reach the values that differ"
        )


def _agreeing(judge: Judge, pairs: Container[Pair]) -> Iterator[Pair]:
    """Those of `pairs` all of whose calls agree."""
    agrees: dict[Pair, bool] = {}
    for item in judge.calls:
        if item.pair in pairs:
            agrees[item.pair] = judge.verdict(item)[0] == "agrees" and agrees.get(item.pair, True)
    yield from (pair for pair, is_so in agrees.items() if is_so)


def _other_matrix(judge: Judge, pair: Pair) -> str | None:
    """Of one module each: the name of the port's matrix, where its values are other ones than the reference's, in
    whatever order."""
    if pair.is_group:
        return None
    ours = matrix_of(judge.reference.nodes[pair.reference[0]])
    theirs = matrix_of(judge.port.nodes[pair.port[0]])
    if ours is None or theirs is None or ours.fingerprint is None or theirs.fingerprint is None:
        return None
    is_alike = (ours.tensor.shape, ours.tensor.dtype) == (theirs.tensor.shape, theirs.tensor.dtype)
    return theirs.name if is_alike and ours.fingerprint.values != theirs.fingerprint.values else None
