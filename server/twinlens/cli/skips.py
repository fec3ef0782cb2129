"""`twinlens scan-skips`: which common tests run for which model, and why the others do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinlens.cli.errors import UserError
from twinlens.cli.output import write

if TYPE_CHECKING:
    from twinlens.skips.report import TestAnswer
    from twinlens.skips.results import Scan
    from twinlens.skips.scan import Linked

REASONS_SHOWN = 10
FINDINGS_EXIT = 1


def scan_skips(
    output_dir: Annotated[
        Path, typer.Option("--output_dir", "--output-dir", help="The folder for the JSON file.")
    ] = Path(),
    test_method_name: Annotated[
        str | None,
        typer.Option("--test_method_name", "--test-method-name", help="One common test, such as test_inputs_embeds."),
    ] = None,
    root: Annotated[Path, typer.Option("--root", help="The root of the transformers checkout.")] = Path(),
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with bars and a heat map as well.")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on", metavar="CODES", help="Lint codes, with commas between: exit with 1 where one is found."
        ),
    ] = None,
    compat: Annotated[bool, typer.Option("--compat", help="Count as upstream's script does, with its faults.")] = False,
) -> None:
    """Tell which common tests really run for each model of a transformers checkout."""
    from twinlens.skips.notices import ScanError

    codes = _codes(fail_on)
    if compat and (html is not None or codes):
        raise UserError("--compat only counts as upstream does; leave out --html and --fail-on")
    _speak_utf8()
    try:
        if compat:
            _scan_as_upstream(root, output_dir, test_method_name)
            return
        found = _scan(root, test_method_name, output_dir, html)
        if codes:
            _fail_on(found, codes)
    except ScanError as error:
        raise UserError(str(error)) from error


def _speak_utf8() -> None:
    """The printed layout has pictographs, which a console of another encoding would refuse."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _codes(given: str | None) -> frozenset[str]:
    if given is None:
        return frozenset()
    from twinlens.skips.lints.catalogue import CATALOGUE

    codes = frozenset(filter(None, (code.strip() for code in given.split(","))))
    unknown = sorted(codes - CATALOGUE.keys())
    if unknown:
        raise UserError(f"no lint has the code {unknown[0]}; the codes are {', '.join(CATALOGUE)}")
    return codes


def _scan(root: Path, test: str | None, output_dir: Path, html: Path | None) -> _Session:
    from twinlens.skips.report import all_answers, answer_for, as_json, to_text

    session = _Session(root)
    scan = session.scan
    if test is None:
        sys.stdout.write(_aggregated(list(scan.tests)))
        _save(output_dir / "all_tests_scan_result.json", to_text(all_answers(scan)))
    else:
        answer = answer_for(scan, _named(scan, test))
        sys.stdout.write(_summary(answer))
        _save(output_dir / f"scan_{test}.json", _one_entry(as_json(answer)))
    if html is not None:
        from twinlens.skips.page import page

        write(html, page(scan))
        sys.stdout.write(f"📊 Page saved to {html.resolve()}\n")
    for notice in scan.notices:
        sys.stderr.write(f"{notice}\n")
    return session


class _Session:
    """One scan of a checkout: from the cache where nothing changed, else made anew and stored."""

    def __init__(self, root: Path) -> None:
        from platformdirs import user_cache_path

        from twinlens.skips.files import Files
        from twinlens.skips.memory import Memory
        from twinlens.skips.results import MODELS_FOLDER
        from twinlens.skips.snapshot import load_snapshot

        self._folder = user_cache_path("twinlens") / "skips"
        self._memory = Memory(self._folder, root)
        self._files = Files(root.resolve(), self._memory)
        self._linked: Linked | None = None
        tests = self._files.model_tests(MODELS_FOLDER)
        if tests:
            sys.stdout.write(_parsing(len(tests)))
        self.scan = load_snapshot(self._folder, self._files, tests) or self.linked.scan

    @property
    def linked(self) -> Linked:
        """The scan with the classes behind it, which the cache does not hold."""
        if self._linked is None:
            from twinlens.skips.scan import scan
            from twinlens.skips.snapshot import save_snapshot

            with _progress() as told:
                self._linked = scan(self._files, told)
            self._memory.save(set(self._files.consulted().values()))
            save_snapshot(self._folder, self._files, self._linked.scan)
        return self._linked


@contextmanager
def _progress() -> Generator[Callable[[int, int], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading test files")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _named(scan: Scan, test: str) -> Any:
    from difflib import get_close_matches

    found = scan.tests.get(test)
    if found is None:
        near = get_close_matches(test, list(scan.tests), n=1)
        raise UserError(f"no common test is called {test}" + (f"; is {near[0]} meant?" if near else ""))
    return found


def _scan_as_upstream(root: Path, output_dir: Path, test: str | None) -> None:
    from twinlens.skips.compat import scan_as_upstream

    found = scan_as_upstream(root.resolve())
    sys.stdout.write(_parsing(found.file_count))
    if test is None:
        sys.stdout.write(_aggregated(list(found.origins)))
        _save(
            output_dir / "all_tests_scan_result.json", _one_entry({name: found.entry(name) for name in found.origins})
        )
        return
    entry = found.entry(test)
    del entry["origin"]
    reasons = [f" - {reason}" for reason in entry["reasons_skipped"]]
    ran, skipped, total = len(entry["models_ran"]), len(entry["models_skipped"]), len(found.models)
    sys.stdout.write(_counts(test, ran, skipped, total, reasons))
    _save(output_dir / f"scan_{test}.json", _one_entry(entry))


def _fail_on(session: _Session, codes: frozenset[str]) -> None:
    from twinlens.skips.lints import Linter

    findings = [finding for finding in Linter(session.linked).all_findings() if finding.code in codes]
    for finding in findings:
        sys.stdout.write(f"{finding.path}:{finding.line}: {finding.code}: {finding.message}\n")
    if findings:
        raise typer.Exit(FINDINGS_EXIT)


def _parsing(count: int) -> str:
    return f"🔬 Parsing {count} model test files once each...\n"


def _aggregated(tests: list[str]) -> str:
    last = f"  ({len(tests)}/{len(tests)}) {tests[-1]}\n" if tests else ""
    return f"📝 Aggregating {len(tests)} tests...\n{last}✅ Scan complete.\n"


def _summary(answer: TestAnswer) -> str:
    from twinlens.skips.report import reasons_skipped

    ran, skipped = sum(found.runs for found in answer.models), len(answer.skipped)
    reasons = [f" - {reason}" for reason in reasons_skipped(answer)]
    text = _counts(answer.test.name, ran, skipped, len(answer.models), reasons)
    mixed, elsewhere = len(answer.mixed), len(answer.not_applicable)
    return f"{text}\nIn some classes only : {mixed} of those that ran\nNot applicable : {elsewhere}\n"


def _counts(test: str, ran: int, skipped: int, total: int, reasons: list[str]) -> str:
    share = skipped / total if total else 0.0
    more = [" - ..."] if len(reasons) > REASONS_SHOWN else []
    head = f"\n== {test} ==\n\nRan    : {ran}/{total}\nSkipped : {skipped}/{total} ({share:.1%})\n"
    return head + "".join(f"{line}\n" for line in [*reasons[:REASONS_SHOWN], *more])


def _one_entry(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, indent=2)


def _save(path: Path, text: str) -> None:
    write(path.expanduser(), text)
    sys.stdout.write(f"\n📄 JSON saved to {path.expanduser().resolve()}\n")
