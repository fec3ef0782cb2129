"""What stands above a test, an override, a flag or a class: who does not run it, and what does not run here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twinlens.skips.facts import Class, Deleted, Function, Value
from twinlens.skips.report import counts_by_state
from twinlens.skips.results import COMMON_FILES, ModelClass, Scan
from twinlens.skips.scan import Linked


@dataclass(frozen=True, slots=True)
class Lens:
    """One sentence above a line. It stands for the places of a test, of a class, or of both."""

    line: int
    title: str
    test: str = ""
    class_name: str = ""


def lenses(linked: Linked, path: str) -> list[Lens]:
    """The sentences of one file, in the order of its lines; none for a file that the scan does not know."""
    module = linked.classes.modules.module(path)
    if module is None:
        return []
    if path in COMMON_FILES:
        found = _of_common_tests(linked.scan, path, module.classes.values())
    else:
        of_file = {cls.name: cls for cls in linked.files[path].classes} if path in linked.files else {}
        found = (
            lens
            for facts in module.classes.values()
            if facts.name in of_file
            for lens in _of_model_class(linked.scan, of_file[facts.name], facts)
        )
    return sorted(found, key=lambda lens: lens.line)


def not_run_by(scan: Scan, test: str) -> str:
    """How many models don't run a test."""
    models, skipped = scan.count(test)
    if not models:
        return "no model inherits it"
    if not skipped:
        return f"run by all {models} models"
    return f"not run by {skipped} of {models} models ({100 * skipped / models:.1f} %)"


def not_run_here(cls: ModelClass) -> str:
    """How many of its common tests a class doesn't run, by state."""
    total = len(cls.outcomes)
    counts = counts_by_state(cls.outcomes.values())
    if not counts:
        return f"all {total} common tests run"
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    return f"{sum(counts.values())} of {total} common tests don't run: {told}"


def _of_common_tests(scan: Scan, path: str, classes: Iterable[Class]) -> Iterator[Lens]:
    for facts in classes:
        for member in facts.members:
            test = scan.tests.get(member.name) if isinstance(member, Function) else None
            if isinstance(member, Function) and test is not None and (test.path, test.line) == (path, member.line):
                yield Lens(member.first_line, not_run_by(scan, test.name), test.name)


def _of_model_class(scan: Scan, cls: ModelClass, facts: Class) -> Iterator[Lens]:
    first_line = min([facts.line, *(decorator.line for decorator in facts.decorators)])
    yield Lens(first_line, not_run_here(cls), class_name=cls.name)
    for member in facts.members:
        if isinstance(member, Deleted):
            continue
        outcome = cls.outcomes.get(member.name)
        line = member.first_line if isinstance(member, Function) else member.line
        if outcome is not None:
            here = "runs" if outcome.runs else outcome.state.value
            elsewhere = not_run_by(scan, member.name)
            yield Lens(line, f"{here} here · {elsewhere}", member.name, cls.name)
        elif isinstance(member, Value):
            count = sum(
                not outcome.runs and (outcome.path, outcome.line) == (cls.path, line)
                for outcome in cls.outcomes.values()
            )
            if count:
                tests = "1 common test" if count == 1 else f"{count} common tests"
                yield Lens(line, f"keeps {tests} from running", class_name=cls.name)
