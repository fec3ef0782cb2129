"""Pair two modules by hand, or take a pair apart, in the user's map file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from twinlens.diffing.mapfile import MapFile, MapPair, pattern_of, read_map, write_map

_LETTERS = "ijklmn"
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


def load_map(path: Path) -> MapFile:
    """The map file, or an empty one where there is none. Raises `TraceError` where it does not parse."""
    return read_map(path) if path.is_file() else MapFile()


def pair(path: Path, reference: str, port: str) -> None:
    """Pair two modules, and with them those of the other layers: equal numbers in both paths become `{i}`, `{j}` …"""
    known = load_map(path)
    ours, theirs = generalised(_without_root(reference), _without_root(port))
    kept = tuple(item for item in known.pairs if not _concerns(item, reference, port))
    write_map(
        path,
        replace(
            known,
            pairs=(*kept, MapPair((ours,), (theirs,))),
            apart_reference=tuple(item for item in known.apart_reference if not pattern_of(item).fullmatch(reference)),
            apart_port=tuple(item for item in known.apart_port if not pattern_of(item).fullmatch(port)),
        ),
    )


def unpair(path: Path, reference: str, port: str) -> None:
    """Take a pair apart: one of the map file is removed from it, any other is written down as apart."""
    known = load_map(path)
    kept = tuple(item for item in known.pairs if not _concerns(item, reference, port))
    if len(kept) < len(known.pairs):
        write_map(path, replace(known, pairs=kept))
        return
    write_map(
        path,
        replace(
            known,
            apart_reference=(*known.apart_reference, _without_root(reference)),
            apart_port=(*known.apart_port, _without_root(port)),
        ),
    )


def generalised(reference: str, port: str) -> tuple[str, str]:
    """Both paths with their numbers as placeholders, where they have the same numbers in the same order."""
    numbers = _NUMBER.findall(f".{reference}"), _NUMBER.findall(f".{port}")
    if not numbers[0] or numbers[0] != numbers[1] or len(numbers[0]) > len(_LETTERS):
        return reference, port
    return _with_letters(reference), _with_letters(port)


def _with_letters(path: str) -> str:
    letters = iter(_LETTERS)
    return _NUMBER.sub(lambda _found: f"{{{next(letters)}}}", f".{path}")[1:]


def _without_root(path: str) -> str:
    return path.partition(".")[2] or path


def _concerns(item: MapPair, reference: str, port: str) -> bool:
    return any(pattern_of(name).fullmatch(reference) for name in item.reference) or any(
        pattern_of(name).fullmatch(port) for name in item.port
    )
