"""What a person reads when the pointer rests on a test, a flag or a test class: Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from twinlens.skips.facts import Class, Deleted, Function
from twinlens.skips.lenses import not_run_by, not_run_here
from twinlens.skips.reasons import ReasonGroup, group_reasons
from twinlens.skips.report import answer_for
from twinlens.skips.results import COMMON_FILES, ModelClass, Scan
from twinlens.skips.scan import Linked
from twinlens.skips.states import Outcome

_REASONS = 8
_TESTS = 6


def hover(linked: Linked, path: str, line: int, name: str) -> str:
    """What is known of a name in a line (from 1) of a file; nothing where it is no test, flag or test class there."""
    module = linked.classes.modules.module(path)
    if module is None:
        return ""
    for facts in module.classes.values():
        cls = _model_class(linked, path, facts)
        if cls is not None and (facts.line, facts.name) == (line, name):
            return "\n".join(_of_class(cls))
        for member in facts.members:
            if isinstance(member, Deleted) or (member.line, member.name) != (line, name):
                continue
            if name in linked.scan.tests and (cls is not None or path in COMMON_FILES):
                here = cls.outcomes.get(name) if cls is not None else None
                return "\n".join(_of_test(linked.scan, name, here))
            if cls is not None and not isinstance(member, Function):
                return "\n".join(_of_flag(cls, member.name, member.line))
    return ""


def _model_class(linked: Linked, path: str, facts: Class) -> ModelClass | None:
    of_file = linked.files[path].classes if path in linked.files else ()
    return next((cls for cls in of_file if cls.name == facts.name), None)


def _of_test(scan: Scan, test: str, here: Outcome | None) -> Iterator[str]:
    answer = answer_for(scan, scan.tests[test])
    yield f"**{test}**: {not_run_by(scan, test)}"
    if answer.mixed:
        yield ""
        yield f"{len(answer.mixed)} more run it in some of their classes only."
    if here is not None:
        yield ""
        yield f"Here: {_told(here)}"
    groups = group_reasons((found.model, reason) for found in answer.skipped for reason in found.reasons)
    if groups:
        yield ""
        yield "| Models | Reason |"
        yield "|--:|:--|"
        yield from (_row(group) for group in groups[:_REASONS])
    if len(groups) > _REASONS:
        yield ""
        rest = groups[_REASONS:]
        yield f"and {len(rest)} other reasons of {len({model for group in rest for model in group.models})} models"


def _row(group: ReasonGroup) -> str:
    return f"| {len(group.models)}&ensp; | {_escaped(group.reason) or '*no reason given*'} |"


def _told(outcome: Outcome) -> str:
    parts = [f"**{outcome.state.value}**"]
    if outcome.condition:
        parts.append(f"if `{outcome.condition}`")
    if outcome.reason:
        parts.append(_escaped(outcome.reason))
    return " · ".join(parts)


def _of_class(cls: ModelClass) -> Iterator[str]:
    yield f"**{cls.name}**: {not_run_here(cls)}"
    by_reason: dict[tuple[str, str], list[str]] = {}
    for test, outcome in cls.outcomes.items():
        if not outcome.runs:
            by_reason.setdefault((outcome.state.value, outcome.reason), []).append(test)
    if by_reason:
        yield ""
        yield "| State | Reason | Tests |"
        yield "|:--|:--|:--|"
        for (state, reason), tests in sorted(by_reason.items(), key=lambda item: -len(item[1])):
            yield f"| {state}&ensp; | {_escaped(reason) or '*no reason given*'}&ensp; | {_names(tests)} |"


def _of_flag(cls: ModelClass, name: str, line: int) -> Iterator[str]:
    tests = [
        test
        for test, outcome in cls.outcomes.items()
        if not outcome.runs and (outcome.path, outcome.line) == (cls.path, line)
    ]
    if tests:
        yield f"**{name}** keeps common tests of {cls.name} from running: {_names(tests)}"


def _names(tests: list[str]) -> str:
    shown = ", ".join(f"`{test}`" for test in tests[:_TESTS])
    return shown if len(tests) <= _TESTS else f"{shown} and {len(tests) - _TESTS} more"


def _escaped(text: str) -> str:
    for character in ("\\", "|", "<", "*", "["):
        text = text.replace(character, f"\\{character}")
    return text
