"""Who descends from whom in a library, and which definitions are the same code under another model's name."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from twinlens.source.ties import FileTies, Reference, is_modular

_LONGEST_RE_EXPORT = 8


@dataclass(frozen=True)
class Lineage:
    """The family tree of a library's definitions, each written as `llama/modeling_llama.py:LlamaMLP`.

    `families` are the sets of twins, each with the member first that a maintainer would inherit from. `parents` maps
    a definition to those it inherits from in a modular file, then to those it was copied from; `heirs` counts the
    classes of modular files that inherit from a definition.
    """

    families: tuple[tuple[str, ...], ...]
    parents: Mapping[str, tuple[str, ...]]
    heirs: Mapping[str, int]

    @cached_property
    def family_of(self) -> Mapping[str, int]:
        """The place in `families` of each definition."""
        return {member: place for place, family in enumerate(self.families) for member in family}

    def twins(self, definition: str) -> tuple[str, ...]:
        """The other members of its family, the one to inherit from first."""
        return tuple(member for member in self.families[self.family_of[definition]] if member != definition)

    def ancestors(self, definition: str) -> tuple[str, ...]:
        """The representatives of the families that this one's family descends from, nearest first."""
        own = self.family_of[definition]
        return tuple(self.families[family][0] for family in self.ancestor_families(own))

    @cached_property
    def family_parents(self) -> Mapping[int, tuple[int, ...]]:
        """The other families that a family's members inherit from or were copied from, by how many say so."""
        found: dict[int, Counter[int]] = defaultdict(Counter)
        for child, parents in self.parents.items():
            own = self.family_of[child]
            found[own].update(place for parent in parents if (place := self.family_of[parent]) != own)
        return {family: tuple(place for place, _ in counts.most_common()) for family, counts in found.items()}

    def ancestor_families(self, family: int) -> Iterator[int]:
        """The places in `families` of those that a family descends from, nearest first."""
        seen = {family}
        queue = deque(self.family_parents.get(family, ()))
        while queue:
            place = queue.popleft()
            if place in seen:
                continue
            seen.add(place)
            yield place
            queue.extend(self.family_parents.get(place, ()))


def trace_lineage(sameness: Mapping[str, str], files: Mapping[str, FileTies]) -> Lineage:
    """The lineage of the definitions in `sameness`: definition → a text that is equal for equal sanitised source.

    `files` maps each file of the library, modular files included, to what it says of its definitions' origins.
    """
    names = _Names(sameness, files)
    parents: dict[str, list[str]] = defaultdict(list)
    heirs: Counter[str] = Counter()
    for file, said in files.items():
        for tie in sorted(said.ties, key=lambda tie: tie.kind != "inherits"):
            child = names.find(Reference(file.removesuffix(".py"), tie.child))
            parent = names.find(tie.parent)
            if child is None or parent is None or child == parent or parent in parents[child]:
                continue
            parents[child].append(parent)
            heirs[parent] += is_modular(file)
    settled = {child: tuple(found) for child, found in parents.items() if found}
    same: dict[str, list[str]] = defaultdict(list)
    for definition, text in sameness.items():
        same[text].append(definition)
    families = tuple(_seniority(members, settled, heirs) for members in same.values())
    return Lineage(families, settled, dict(heirs))


def _seniority(
    members: Sequence[str], parents: Mapping[str, Sequence[str]], heirs: Mapping[str, int]
) -> tuple[str, ...]:
    """`members` with those first that most of the others descend from, then the most inherited from."""
    if len(members) == 1:
        return tuple(members)
    family = set(members)
    descendants = Counter(elder for member in members for elder in _elders(member, parents) if elder in family)
    return tuple(
        sorted(members, key=lambda member: (-descendants[member], -heirs.get(member, 0), member in parents, member))
    )


def _elders(definition: str, parents: Mapping[str, Sequence[str]]) -> set[str]:
    seen: set[str] = set()
    queue = list(parents.get(definition, ()))
    while queue:
        elder = queue.pop()
        if elder not in seen and elder != definition:
            seen.add(elder)
            queue.extend(parents.get(elder, ()))
    return seen


class _Names:
    """Finds the definition that a reference means, through re-exports, generated files and moved modules."""

    def __init__(self, definitions: Iterable[str], files: Mapping[str, FileTies]) -> None:
        self._definitions = frozenset(definitions)
        self._exports = {file.removesuffix(".py"): dict(said.imports) for file, said in files.items() if said.imports}
        self._in_folder: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._anywhere: dict[str, list[str]] = defaultdict(list)
        for definition in self._definitions:
            file, name = definition.split(":", 1)
            self._in_folder[file.rpartition("/")[0], name].append(definition)
            self._anywhere[name].append(definition)

    def find(self, reference: Reference) -> str | None:
        for _ in range(_LONGEST_RE_EXPORT):
            exact = f"{reference.module}.py:{reference.name}"
            if exact in self._definitions:
                return exact
            onward = self._exports.get(reference.module, {}).get(reference.name)
            if onward is None or onward == reference:
                break
            reference = onward
        return self._nearby(reference)

    def _nearby(self, reference: Reference) -> str | None:
        """The generated file's definition for a modular file's, a package's own, or the only one of that name."""
        for folder in (reference.module.rpartition("/")[0], reference.module):
            found = self._in_folder.get((folder, reference.name))
            if found:
                return min(found)
        everywhere = self._anywhere.get(reference.name, [])
        return everywhere[0] if len(everywhere) == 1 else None
