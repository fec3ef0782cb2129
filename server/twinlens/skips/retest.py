"""An edit inside the tests of a common file: only those tests, and those that call them, need to be decided anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from twinlens.skips.facts import Branch, Call, Class, File, Function, Loop, Member, Step
from twinlens.skips.positions import same_elsewhere
from twinlens.skips.states import Outcome


@dataclass(frozen=True, slots=True)
class EditedTests:
    """The tests that an edit changed, and where the lines of everything else went."""

    tests: frozenset[str]
    lines: Mapping[int, int]


def edited_tests(before: File, after: File) -> EditedTests | None:
    """What an edit changed, if it is nothing but what tests do; `None` where more than that may follow from it."""
    lines: dict[int, int] = {}
    around = ("functions", "values", "imports", "deleted", "error")
    if not all(same_elsewhere(getattr(before, name), getattr(after, name), lines) for name in around):
        return None
    if len(before.classes) != len(after.classes):
        return None
    changed: set[str] = set()
    for old, new in zip(before.classes, after.classes, strict=True):
        if not same_elsewhere(replace(old, members=()), replace(new, members=()), lines):
            return None
        tests = _changed_tests(old, new, lines)
        if tests is None:
            return None
        changed |= tests
    return EditedTests(frozenset(changed), lines)


def _changed_tests(old: Class, new: Class, lines: dict[int, int]) -> set[str] | None:
    if len(old.members) != len(new.members):
        return None
    changed: set[str] = set()
    for before, after in zip(old.members, new.members, strict=True):
        if same_elsewhere(before, after, lines):
            continue
        if not _is_test_with_as_many_variants(before, after):
            return None
        changed.add(before.name)
    return changed


def _is_test_with_as_many_variants(before: Member, after: Member) -> bool:
    if not isinstance(before, Function) or not isinstance(after, Function) or before.name != after.name:
        return False
    if not before.name.startswith("test_") or before.role != "method" or after.role != "method":
        return False
    multiplied = any(item.name.endswith("expand") for item in (*before.decorators, *after.decorators))
    return not multiplied or same_elsewhere(before.decorators, after.decorators, {})


def calls_to_tests(file: File) -> frozenset[tuple[str, str]]:
    """Which function of a file calls which test, by name."""
    members = (member for cls in file.classes for member in cls.members)
    functions = [item for item in (*file.functions, *members) if isinstance(item, Function)]
    return frozenset(
        (function.name, called.rpartition(".")[2])
        for function in functions
        for called in _called(function.steps)
        if called.rpartition(".")[2].startswith("test")
    )


def with_callers(tests: frozenset[str], calls: Iterable[tuple[str, str]]) -> frozenset[str] | None:
    """Tests with all tests that call them; `None` where something that is no test does."""
    pairs = [(caller, called) for caller, called in calls if caller != called]
    found = set(tests)
    while more := {caller for caller, called in pairs if called in found} - found:
        if not all(caller.startswith("test") for caller in more):
            return None
        found |= more
    return frozenset(found)


def relocated(outcome: Outcome, path: str, lines: Mapping[int, int], known: dict[int, Outcome]) -> Outcome:
    """An outcome whose place moved with its file; `known` keeps one for each that was asked about, by identity."""
    made = known.get(id(outcome))
    if made is None:
        made = outcome
        if outcome.path == path or any(variant.path == path for _, variant in outcome.variants):
            variants = tuple((name, relocated(variant, path, lines, known)) for name, variant in outcome.variants)
            line = lines.get(outcome.line, outcome.line) if outcome.path == path else outcome.line
            made = replace(outcome, line=line, variants=variants)
        known[id(outcome)] = made
    return made


def _called(steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        match step:
            case Call(name=name):
                yield name
            case Branch(body=body, orelse=orelse):
                yield from _called(body + orelse)
            case Loop(body=body):
                yield from _called(body)
