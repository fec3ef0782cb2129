"""The shape of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from twinlens.checks.finding import Finding
from twinlens.checks.subject import Subject


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, with all that its page says.

    `title` is one sentence that states the mistake, `why` what it leads to. `wrong` and `right` are twins: whole files,
    of which only the first has a finding of this check.
    """

    code: str
    title: str
    why: str
    wrong: str
    right: str
    find: Callable[[Subject], Iterator[Finding]]


def page_path(code: str) -> Path:
    """The file with the page of the check `code`, as the package holds it."""
    return Path(__file__).with_name("pages") / f"{code}.md"


def page(check: Check) -> str:
    """The explanation of a check, as Markdown."""
    return (
        f"# {check.code}\n\n{check.title}\n\n## Why it matters\n\n{check.why.strip()}\n\n"
        f"## Wrong\n\n```python\n{check.wrong.strip()}\n```\n\n## Right\n\n```python\n{check.right.strip()}\n```\n\n"
        f"A line that is meant as it stands ends with `# twinlens: ignore[{check.code}]`.\n"
    )
