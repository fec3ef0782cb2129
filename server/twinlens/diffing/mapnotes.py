"""What a map file asks for in vain: its user believes that it took part."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.diffing.align import Alignment
from twinlens.diffing.mapfile import MapFile, MapPair, pattern_of
from twinlens.diffing.nodes import Side

_MOST_TOLD = 6


def entries_in_vain(mapping: MapFile, alignment: Alignment, reference: Side, port: Side) -> list[str]:
    """A sentence for each entry of `mapping` that paired nothing or set nothing apart, at most six and their rest."""
    sentences = [
        *_pairs_in_vain(mapping, alignment, reference, port),
        *_apart_in_vain(mapping.apart_reference, "reference", reference),
        *_apart_in_vain(mapping.apart_port, "port", port),
    ]
    left = len(sentences) - _MOST_TOLD
    rest = [f"{left} more entries of the map file are without effect"] if left > 1 else sentences[_MOST_TOLD:]
    return [*sentences[:_MOST_TOLD], *rest]


def _pairs_in_vain(mapping: MapFile, alignment: Alignment, reference: Side, port: Side) -> Iterator[str]:
    for pair in mapping.pairs:
        if not _took_part(pair, alignment):
            told = f"the map file's pair of {' + '.join(pair.reference)} with {' + '.join(pair.port)} has no effect"
            missing = [
                f"the {name} has no module {pattern}"
                for name, side, patterns in (("reference", reference, pair.reference), ("port", port, pair.port))
                for pattern in patterns
                if not _names_any(pattern, side)
            ]
            why = " and ".join(missing) or "its two sides never fit, or another entry took these modules"
            yield f"{told}: {why}"


def _took_part(pair: MapPair, alignment: Alignment) -> bool:
    ours, theirs = pattern_of(pair.reference[0]), pattern_of(pair.port[0])
    return any(
        made.how == "map"
        and made.transform == pair.transform
        and ours.fullmatch(made.reference[0])
        and theirs.fullmatch(made.port[0])
        for made in alignment.pairs
    )


def _apart_in_vain(patterns: tuple[str, ...], name: str, side: Side) -> Iterator[str]:
    for pattern in patterns:
        if not _names_any(pattern, side):
            yield f"the map file sets {pattern} apart without effect: the {name} has no such module"


def _names_any(pattern: str, side: Side) -> bool:
    wanted = pattern_of(pattern)
    return any(wanted.fullmatch(path) for path in side.nodes)
