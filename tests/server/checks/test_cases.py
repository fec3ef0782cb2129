"""Small wrong files, each with one finding of its check, and their right twins, without any."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlens.checks.assembly import Assembly
from twinlens.checks.check import page, page_path
from twinlens.checks.engine import check_text
from twinlens.checks.finding import Finding
from twinlens.checks.rules import CHECKS
from twinlens.checks.world import World

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*/*"))
LIBRARY = World((HERE / "library" / "transformers" / "models",))


def findings(path: Path, text: str) -> list[Finding]:
    return check_text(path, text, Assembly(LIBRARY))


def fixed(text: str, finding: Finding) -> str:
    """`text` with the finding's fix applied."""
    assert finding.fix is not None
    lines = text.encode().split(b"\n")
    for edit in sorted(finding.fix.edits, key=lambda edit: (edit.span.line, edit.span.column), reverse=True):
        span = edit.span
        before, after = lines[span.line - 1][: span.column], b""
        if span.end_line <= len(lines):
            after = lines[span.end_line - 1][span.end_column :]
        lines[span.line - 1 : span.end_line] = (before + edit.text.encode() + after).split(b"\n")
    return b"\n".join(lines).decode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_wrong_file_has_a_finding_of_its_check_only_and_its_twin_has_none(case):
    wrong, right = ((case / name).read_text() for name in ("wrong.py", "right.py"))
    assert {finding.code for finding in findings(case / "wrong.py", wrong)} == {case.parent.name}
    assert findings(case / "right.py", right) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_fix_mends_what_it_is_offered_for(case):
    text = (case / "wrong.py").read_text()
    found = findings(case / "wrong.py", text)
    for finding in found:
        if finding.fix is not None:
            again = findings(case / "wrong.py", fixed(text, finding))
            assert len(again) < len(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_comment_takes_a_finding_away(case):
    lines = (case / "wrong.py").read_text().split("\n")
    for finding in findings(case / "wrong.py", "\n".join(lines)):
        lines[finding.span.line - 1] += f"  # twinlens: ignore[{finding.code}]"
    assert findings(case / "wrong.py", "\n".join(lines)) == []


def test_every_check_has_several_shapes():
    shapes = {check.code: len(list((HERE / "cases" / check.code).glob("*/wrong.py"))) for check in CHECKS}
    assert all(count >= 2 for count in shapes.values()), shapes
    assert sum(shapes.values()) >= 40


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_the_examples_of_a_page_are_what_they_say(check, installed):
    path = HERE / "example.py"
    assert {finding.code for finding in check_text(path, check.wrong, Assembly(installed))} == {check.code}
    assert check_text(path, check.right, Assembly(installed)) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_the_written_page_is_that_of_the_check(check):
    # scripts/write_check_pages.py writes them.
    assert page_path(check.code).read_text(encoding="utf-8") == page(check)


@pytest.mark.parametrize(
    ("comment", "is_reported"),
    [
        ("# twinlens: ignore[unknown-class]", False),
        ("# twinlens: ignore[no-cache, unknown-class]", False),
        ("# twinlens: ignore", False),
        ("# twinlens: ignore[no-cache]", True),
        ("# twinlens: ignored", True),
    ],
)
@pytest.mark.parametrize("place", ["beside", "above"])
def test_a_comment_ignores_the_codes_that_it_names(comment, is_reported, place):
    line = '    _can_record_outputs = {"hidden_states": Gone}'
    written = f"{line}  {comment}" if place == "beside" else f"    {comment}\n{line}"
    text = f"class Model:\n{written}\n"
    assert [finding.code for finding in findings(HERE / "model.py", text)] == (["unknown-class"] if is_reported else [])


def test_a_text_without_any_of_it_is_not_even_parsed():
    assert findings(HERE / "model.py", "this is no Python") == []


def test_a_text_that_does_not_parse_raises(tmp_path):
    with pytest.raises(SyntaxError):
        findings(tmp_path / "model.py", "_can_record_outputs = {")
