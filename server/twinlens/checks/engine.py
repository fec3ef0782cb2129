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
_IGNORED = re.compile(r"#\s*twinlens:\s*ignore\[([\w\s,-]+)\]")


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
    ignored = _ignored(text)
    findings = dict.fromkeys(finding for check in checks for finding in check.find(subject))
    reported = [finding for finding in findings if finding.code not in ignored.get(finding.span.line, ())]
    return sorted(reported, key=lambda finding: (finding.span.line, finding.span.column, finding.code))


def _ignored(text: str) -> dict[int, set[str]]:
    """The codes that a comment asks to ignore, by line from 1."""
    lines = re.split(r"\r\n|\r|\n", text)
    return {
        number: {code.strip() for code in found[1].split(",")}
        for number, line in enumerate(lines, 1)
        if (found := _IGNORED.search(line))
    }
