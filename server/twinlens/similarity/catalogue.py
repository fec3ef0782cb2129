"""The library's definitions as answers name them: which are twins, what they descend from, where they stand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from twinlens.similarity.answers import Match
from twinlens.similarity.corpus import Entry
from twinlens.source.dates import is_later
from twinlens.source.lineage import Lineage, trace_lineage
from twinlens.source.ties import FileTies


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """A set of twins by their rows, the one to inherit from first; `key` is the sameness of their source.

    `children` counts, for each model, its definitions that inherit from a member or were copied from one.
    """

    key: str
    rows: tuple[int, ...]
    children: Mapping[str, int]


class Catalogue:
    """The entries of an index, row by row. A row that is not `alive` was replaced by a later one."""

    def __init__(
        self,
        entries: Sequence[Entry],
        ties: Mapping[str, FileTies],
        dates: Mapping[str, str],
        roots: Sequence[Path],
        dead: Collection[int] = (),
    ) -> None:
        """`dates` maps a model to the day of its release; `roots` are the library's folders."""
        self.entries = tuple(entries)
        self._roots = tuple(roots)
        self._path_of = lru_cache(maxsize=None)(self._find_path)
        self._dates = dates
        self.alive = bytearray(b"\x01" * len(entries))
        for row in dead:
            self.alive[row] = 0
        self._rows = {entry.identifier: row for row, entry in enumerate(entries) if self.alive[row]}
        self._lineage = trace_lineage({key: entries[row].sameness for key, row in self._rows.items()}, ties)
        self.families = self._family_rows(self._lineage)
        self.family_of = {row: place for place, family in enumerate(self.families) for row in family.rows}
        self._rows_of_model: dict[str, list[int]] = defaultdict(list)
        for row, entry in enumerate(entries):
            self._rows_of_model[entry.model].append(row)
        self._spellings: dict[str, list[str]] = defaultdict(list)
        for model in self._rows_of_model:
            self._spellings[_normal(model)].append(model)

    def models_left_out(self, own: str, before: date | None) -> frozenset[str]:
        """The query's own model, and those that are known to be newer than `before`."""
        left_out = set(self._spellings.get(_normal(own), ()))
        if before is not None:
            left_out |= {model for model in self._rows_of_model if is_later(self._dates.get(model), before)}
        return frozenset(left_out)

    def allowed(self, left_out: Collection[str]) -> bytearray:
        """1 for each row that may be named in an answer, else 0."""
        found = bytearray(self.alive)
        for model in left_out:
            for row in self._rows_of_model[model]:
                found[row] = 0
        return found

    def match(self, row: int, cosine: float | None, share: float, in_both: bool = False) -> Match:
        entry = self.entries[row]
        return Match(
            entry.model,
            entry.name,
            self._path_of(entry.relative),
            entry.line,
            None if cosine is None else min(1.0, cosine),
            share,
            in_both,
        )

    def _find_path(self, relative: str) -> str:
        places = [root / relative for root in self._roots]
        return str(next((place for place in places if place.is_file()), places[0] if places else relative))

    def ancestors(self, row: int) -> tuple[str, ...]:
        """The identities of the families' representatives that the row's family descends from, nearest first."""
        return tuple(self._identity(found) for found in self._lineage.ancestors(self.entries[row].identifier))

    def parents(self, model: str, name: str) -> tuple[int, ...]:
        """The rows that the library's own definition of that name inherits from or was copied from."""
        for spelling in self._spellings.get(_normal(model), ()):
            for row in self._rows_of_model[spelling]:
                if self.entries[row].name == name and self.alive[row]:
                    parents = self._lineage.parents.get(self.entries[row].identifier, ())
                    return tuple(self._rows[parent] for parent in parents)
        return ()

    def _identity(self, identifier: str) -> str:
        return self.entries[self._rows[identifier]].identity

    def _family_rows(self, lineage: Lineage) -> tuple[FamilyRows, ...]:
        children: list[dict[str, int]] = [defaultdict(int) for _ in lineage.families]
        for child, parents in lineage.parents.items():
            model = self.entries[self._rows[child]].model
            for family in {lineage.family_of[parent] for parent in parents}:
                children[family][model] += 1
        return tuple(
            FamilyRows(
                self.entries[self._rows[members[0]]].sameness,
                tuple(self._rows[member] for member in members),
                counts,
            )
            for members, counts in zip(lineage.families, children, strict=True)
        )


def _normal(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", model.lower())
