"""Run the checks over a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from twinlens.checks.assembly import Assembly
from twinlens.checks.check import Check
from twinlens.checks.finding import Finding
from twinlens.checks.rules import CHECKS
from twinlens.checks.subject import Subject

_CONCERNED = re.compile(r"\b(_can_record_outputs|capture_outputs|merge_with_config_defaults|register_patch_mapping)\b")
_LINE_END = re.compile(r"\r\n|\r|\n")
_IGNORED = re.compile(r"#\s*twinlens:\s*ignore(?:\[([^\]]*)\])?\s*$")


def is_concerned(text: str) -> bool:
    """Whether a text has anything for the checks to look at."""
    return _CONCERNED.search(text) is not None


def check_text(path: Path, text: str, assembly: Assembly, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """The findings in `text`, the source of the file `path`, in the order of their places.

    Raises `SyntaxError` where `text` does not parse.
    """
    if not is_concerned(text):
        return []
    subject = Subject(assembly.world.module_of(path, text), assembly)
    findings = dict.fromkeys(finding for check in checks for finding in check.find(subject))
    lines = _LINE_END.split(text)
    reported = [finding for finding in findings if not _is_ignored(finding, lines)]
    return sorted(reported, key=lambda finding: (finding.span.line, finding.span.column, finding.code))


def _is_ignored(finding: Finding, lines: Sequence[str]) -> bool:
    """Whether a comment on the finding's line, or on a line of its own above it, asks to ignore it."""
    line = finding.span.line
    beside = lines[line - 1] if line <= len(lines) else ""
    above = lines[line - 2].strip() if line > 1 else ""
    return any(
        found is not None and (found[1] is None or finding.code in re.split(r"[\s,]+", found[1].strip()))
        for found in (_IGNORED.search(beside), _IGNORED.match(above))
    )
