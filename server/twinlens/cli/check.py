"""`twinlens check`: is output capturing, and is class patching, declared as it will work?"""

from __future__ import annotations

import gc
import json
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from twinlens.cli.errors import UserError
from twinlens.cli.library import library_near

if TYPE_CHECKING:
    from twinlens.checks.finding import Finding

FINDINGS_EXIT = 1
UNREAD_EXIT = 2
_SUFFIXES = (".py", ".pyi")
_SKIPPED_FOLDERS = ("node_modules", "__pycache__", "site-packages", "venv")


def check(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files, or folders: every Python file in them.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,
    as_sarif: Annotated[bool, typer.Option("--sarif", help="Print the findings as SARIF 2.1.0.")] = False,
    library: Annotated[
        Path | None, typer.Option("--library", help="A folder of models, in place of the installed transformers.")
    ] = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="CODE", help="Print the page of one check.")
    ] = None,
) -> None:
    """Check how _can_record_outputs, its decorators and register_patch_mapping are used.

    Exit code 0: no findings; 1: findings; 2: a file that was named, or every file of the folders, cannot be checked.
    """
    if explain is not None:
        sys.stdout.write(_page(explain))
        return
    if not paths:
        raise UserError("name a file or a folder to check")
    if as_json and as_sarif:
        raise UserError("choose one of --json and --sarif")
    run = _run(_files(paths), paths, library)
    if as_json:
        sys.stdout.write(json.dumps([_as_json(placed) for placed in run.findings], indent=2) + "\n")
    elif as_sarif:
        sys.stdout.write(json.dumps(_sarif(run.findings), indent=2) + "\n")
    else:
        for placed in run.findings:
            sys.stdout.write(f"{placed.path}:{placed.line}:{placed.column}: {placed.finding.code} {placed.message}\n")
    for sentence in run.unread.values():
        sys.stderr.write(f"{sentence}\n")
    not_checked = f", {_counted(len(run.unread), 'file')} not checked" if run.unread else ""
    sys.stderr.write(
        f"{_counted(len(run.findings), 'finding')} in {_counted(run.files, 'file')}{not_checked}, {run.seconds:.1f} s\n"
    )
    if not run.files or any(path in run.unread for path in paths):
        raise SystemExit(UNREAD_EXIT)
    if run.findings:
        raise SystemExit(FINDINGS_EXIT)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(frozen=True, slots=True)
class _Placed:
    """A finding as a person counts: lines and columns from 1, columns in characters."""

    path: Path
    finding: Finding
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def message(self) -> str:
        return self.finding.message


@dataclass(frozen=True, slots=True)
class _Run:
    """`unread` has a sentence for each file that was not checked; `files` counts those that were."""

    findings: list[_Placed]
    unread: dict[Path, str]
    files: int
    seconds: float


def _run(files: Sequence[Path], paths: Sequence[Path], library: Path | None) -> _Run:
    from twinlens.checks.assembly import Assembly
    from twinlens.checks.engine import check_text, is_concerned
    from twinlens.checks.world import World
    from twinlens.source.definitions import parse, read_source

    # Hundreds of syntax trees are made and none is given up before the end: collecting would only walk them again.
    gc.disable()
    # Python 3.12 tells of odd escapes in whatever it parses: that is no finding of ours.
    warnings.simplefilter("ignore", SyntaxWarning)
    start = time.perf_counter()
    assembly = Assembly(World(_models(paths, library)))
    findings: list[_Placed] = []
    unread: dict[Path, str] = {}
    for path in files:
        try:
            text = read_source(path)
            if not is_concerned(text):
                parse(text)  # nothing in it is looked at, but "no findings" is said of what can run only
                continue
            findings += [_placed(path, text, finding) for finding in check_text(path.resolve(), text, assembly)]
        except OSError as error:
            unread[path] = f"{path} cannot be read: {error.strerror}"
        except SyntaxError as error:
            place = f" at line {error.lineno}" if error.lineno else ""
            unread[path] = f"{path} does not parse{place}: {error.msg}"
    if len(unread) == len(files) == 1:
        raise UserError(*unread.values())
    return _Run(findings, unread, len(files) - len(unread), time.perf_counter() - start)


def _models(near: Sequence[Path], folder: Path | None) -> tuple[Path, ...]:
    found = library_near(near, [folder] if folder else [])
    return found.roots if found else ()


def _files(paths: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist")
        if path.is_dir():
            inside = list(_python_files(path))
            if not inside:
                raise UserError(f"{path} holds no Python file")
            found.update(dict.fromkeys(inside))
        elif path.suffix in _SUFFIXES:
            found[path] = None
        else:
            raise UserError(f"{path} is no Python file; name files that end in .py, or folders")
    return list(found)


def _python_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder).parts[:-1]
        if not any(part.startswith(".") or part in _SKIPPED_FOLDERS for part in inside):
            yield path


def _placed(path: Path, text: str, finding: Finding) -> _Placed:
    lines = re.split(r"\r\n|\r|\n", text)

    def characters(line: int, column: int) -> int:
        encoded = lines[line - 1].encode("utf-8", "surrogatepass") if line <= len(lines) else b""
        return len(encoded[:column].decode("utf-8", "ignore")) + 1

    span = finding.span
    start, end = characters(span.line, span.column), characters(span.end_line, span.end_column)
    return _Placed(path, finding, span.line, start, span.end_line, end)


def _as_json(placed: _Placed) -> dict[str, str | int]:
    return {
        "path": str(placed.path),
        "line": placed.line,
        "column": placed.column,
        "code": placed.finding.code,
        "message": placed.message,
    }


def _sarif(findings: Sequence[_Placed]) -> dict[str, object]:
    from twinlens import __version__
    from twinlens.checks.check import page
    from twinlens.checks.rules import CHECKS

    rules = [
        {
            "id": check.code,
            "shortDescription": {"text": check.title},
            "help": {"text": page(check), "markdown": page(check)},
        }
        for check in CHECKS
    ]
    driver = {"name": "twinlens", "version": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(placed) for placed in findings],
            }
        ],
    }


def _result(placed: _Placed) -> dict[str, object]:
    region = {
        "startLine": placed.line,
        "startColumn": placed.column,
        "endLine": placed.end_line,
        "endColumn": placed.end_column,
    }
    location = {"artifactLocation": {"uri": _uri(placed.path)}, "region": region}
    return {
        "ruleId": placed.finding.code,
        "level": "warning",
        "message": {"text": placed.message},
        "locations": [{"physicalLocation": location}],
    }


def _uri(path: Path) -> str:
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _page(code: str) -> str:
    from twinlens.checks.check import page
    from twinlens.checks.rules import CHECKS

    known = {check.code: check for check in CHECKS}
    if code not in known:
        raise UserError(f"no check has the code {code}; the codes are {', '.join(known)}")
    return page(known[code])
