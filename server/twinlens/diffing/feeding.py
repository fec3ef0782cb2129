"""What a replay is asked: which of the reference's tensors to give to each call of the port's modules, and to hand on
in place of what they return. Standard library only: the process that replays runs in the user's interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Feed:
    """The reference's tensors `tensors` (their ids), joined along the last dimension, in the place `place` of the
    port's arguments or results; of their columns those in `columns`, in that order (all where it is None)."""

    place: str
    tensors: tuple[int, ...]
    columns: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FedCall:
    inputs: tuple[Feed, ...]
    outputs: tuple[Feed, ...]


@dataclass(frozen=True, slots=True)
class Feeding:
    """One replay. `calls` is by the port's `path|forward|number`."""

    reference: str
    """The folder of the reference's trace."""
    target: str
    """The port, as `twinlens trace` takes it."""
    root: str
    folder: str
    """Where the trace of the replay goes."""
    calls: Mapping[str, FedCall]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Feeding:
        fields: dict[str, Any] = json.loads(text)
        calls = {
            key: FedCall(*(tuple(_feed(item) for item in call[side]) for side in ("inputs", "outputs")))
            for key, call in fields.pop("calls").items()
        }
        return Feeding(calls=calls, **fields)


def _feed(item: Mapping[str, Any]) -> Feed:
    columns = item["columns"]
    return Feed(item["place"], tuple(item["tensors"]), None if columns is None else tuple(columns))


def key_of(path: str, forward: int, number: int) -> str:
    return f"{path}|{forward}|{number}"
