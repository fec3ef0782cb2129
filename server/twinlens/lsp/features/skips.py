"""Which common tests really run: lenses, hovers and flags in test files, and what the client's view asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from twinlens.lsp import protocol
from twinlens.lsp.checkouts import InCheckout
from twinlens.lsp.documents import Document
from twinlens.lsp.jsonrpc import Refused
from twinlens.lsp.services import Services
from twinlens.skips.hover import hover as hover_text
from twinlens.skips.lenses import lenses
from twinlens.skips.lints import CATALOGUE, Finding, Linter
from twinlens.skips.lints.edits import edited_lines
from twinlens.skips.notices import ScanError
from twinlens.skips.places import Place, places_of_class, places_of_test
from twinlens.skips.report import AnswerState, TestAnswer, all_answers, answer_for
from twinlens.skips.scan import Linked

SHOW_PLACES = "twinlens.showSkips"
SOURCE = "Twinlens"


def register(server: LanguageServer, services: Services) -> None:
    """Adds lenses, hover, diagnostics with their fixes, and the requests of the peek and of the view."""
    _keep_scanned(services)
    _contribute(services)

    @server.feature(protocol.SKIP_PLACES)
    async def skip_places(params: protocol.SkipPlacesParams) -> protocol.SkipPlacesResult:
        here = await services.checkouts.of_document(services.documents.get(params.uri))
        if here is None:
            raise Refused("The tests of this checkout are still being read.")
        scan = here.linked.scan
        if params.test is not None:
            found = places_of_test(scan, params.test)
        else:
            found = places_of_class(scan, here.path, params.class_name or "")
        return protocol.SkipPlacesResult([_place_on_wire(scan.root, place) for place in found])

    @server.feature(protocol.SKIPPED_TESTS)
    async def skipped_tests(_: protocol.Nothing) -> protocol.SkippedTestsResult:
        try:
            linked = await services.checkouts.of_workspace()
        except ScanError as error:
            return protocol.SkippedTestsResult(str(error), [])
        if linked is None:
            return protocol.SkippedTestsResult("Open a transformers checkout to see which of its tests run.", [])
        answers = sorted(all_answers(linked.scan), key=lambda answer: (-answer.proportion, answer.test.name))
        return protocol.SkippedTestsResult(None, [_test_on_wire(linked.scan.root, answer) for answer in answers])

    @server.feature(protocol.SKIPPING_MODELS)
    async def skipping_models(params: protocol.SkippingModelsParams) -> protocol.SkippingModelsResult:
        linked = await services.checkouts.of_workspace()
        test = linked.scan.tests.get(params.test) if linked is not None else None
        if linked is None or test is None:
            raise Refused(f"No common test is called {params.test} any more.")
        return protocol.SkippingModelsResult(_models_on_wire(linked.scan.root, answer_for(linked.scan, test)))


def _keep_scanned(services: Services) -> None:
    services.contribute.start(services.checkouts.start)

    def refresh() -> None:
        services.editor.refresh_lenses()
        services.editor.refresh_diagnostics()
        services.editor.notify(protocol.SKIPS_CHANGED, protocol.Nothing())

    @services.contribute.files_changed
    async def files_changed(paths: Sequence[Path]) -> None:
        if await services.checkouts.changed_on_disk(paths):
            refresh()

    services.checkouts.on_scanned(refresh)
    services.settings.on_change(lambda _: services.editor.refresh_diagnostics())


def _contribute(services: Services) -> None:
    linters = _Linters(services)
    seen = _LastSeen(services)

    @services.contribute.code_lenses
    async def code_lenses(document: Document) -> Sequence[types.CodeLens]:
        here = await services.checkouts.of_document(document)
        if here is None:
            return []
        seen.now(here.linked)
        return [
            types.CodeLens(
                document.lines.range(lens.line, 0, lens.line, 0),
                types.Command(
                    lens.title,
                    SHOW_PLACES,
                    arguments=[document.uri, lens.line, lens.test or None, lens.class_name or None],
                ),
            )
            for lens in lenses(here.linked, here.path)
        ]

    @services.contribute.hover
    async def hover(document: Document, position: types.Position) -> str | None:
        word = document.lines.word(position)
        here = await services.checkouts.of_document(document) if word is not None else None
        if here is None or word is None:
            return None
        return hover_text(here.linked, here.path, position.line + 1, word.text) or None

    @services.contribute.diagnostics
    async def diagnostics(document: Document) -> Sequence[types.Diagnostic]:
        here = await services.checkouts.of_document(document)
        return [] if here is None else [_diagnostic(document, found) for found in linters.findings(here)]

    @services.contribute.code_actions
    async def code_actions(document: Document, params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        flags = [flag for flag in params.context.diagnostics if flag.source == SOURCE and flag.code in CATALOGUE]
        here = await services.checkouts.of_document(document) if flags else None
        found = linters.findings(here) if here is not None else []
        return [
            action
            for flag in flags
            for finding in found
            if finding.code == flag.code and finding.line == flag.range.start.line + 1
            for action in _actions(document, finding, flag)
        ]


class _Linters:
    """The linter of the newest scan; its memory is worth keeping from one document to the next."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._for: tuple[Linked, int] | None = None
        self._linter: Linter | None = None

    def findings(self, here: InCheckout) -> list[Finding]:
        wanted = (here.linked, self._services.settings.current.skips.rare)
        if self._linter is None or self._for != wanted:
            self._for, self._linter = wanted, Linter(*wanted)
        return self._linter.findings(here.path)


class _LastSeen:
    """Has the lenses of other documents asked for again after an edit of one: the editor asks for that one only."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._linked: Linked | None = None

    def now(self, linked: Linked) -> None:
        if self._linked is not None and linked is not self._linked:
            self._services.editor.refresh_lenses()
        self._linked = linked


def _diagnostic(document: Document, finding: Finding) -> types.Diagnostic:
    lint = CATALOGUE[finding.code]
    sentence = finding.message if finding.message.endswith("?") else f"{finding.message}."
    return types.Diagnostic(
        document.lines.range(finding.line, finding.column, finding.line, finding.column + finding.length),
        f"{sentence}\n{lint.why}",
        severity=types.DiagnosticSeverity.Warning if lint.serious else types.DiagnosticSeverity.Information,
        code=finding.code,
        source=SOURCE,
    )


def _actions(document: Document, finding: Finding, flag: types.Diagnostic) -> Iterable[types.CodeAction]:
    lines = document.lines.lines
    if finding.fix is not None:
        first, last, text = edited_lines(finding.fix, lines)
        edit = types.TextEdit(types.Range(types.Position(first, 0), types.Position(last, 0)), text)
        yield _fix(document, finding.fix.title, flag, edit, preferred=True)
    end = document.lines.position(finding.line, len(lines[finding.line - 1].encode()))
    silence = types.TextEdit(types.Range(end, end), f"  # twinlens: ignore[{finding.code}]")
    yield _fix(document, f"Ignore {finding.code} here", flag, silence, preferred=False)


def _fix(
    document: Document, title: str, flag: types.Diagnostic, edit: types.TextEdit, *, preferred: bool
) -> types.CodeAction:
    change = types.WorkspaceEdit(changes={document.uri: [edit]})
    return types.CodeAction(title, types.CodeActionKind.QuickFix, [flag], edit=change, is_preferred=preferred)


def _place_on_wire(root: Path, place: Place) -> protocol.SkipPlace:
    return protocol.SkipPlace(
        str(root / place.path),
        place.line,
        place.model,
        place.class_name,
        place.test,
        place.state.value,
        place.reason,
    )


def _test_on_wire(root: Path, answer: TestAnswer) -> protocol.SkippedTest:
    states: dict[AnswerState, int] = {}
    for found in answer.models:
        states[found.state] = states.get(found.state, 0) + 1
    return protocol.SkippedTest(
        answer.test.name,
        answer.test.origin,
        str(root / answer.test.path),
        answer.test.line,
        len(answer.skipped),
        len(answer.mixed),
        len(answer.models),
        [protocol.SkipStateCount(state, count) for state, count in states.items()],
    )


def _models_on_wire(root: Path, answer: TestAnswer) -> list[protocol.SkippingModel]:
    return [
        protocol.SkippingModel(
            found.model,
            found.state,
            [
                protocol.SkippingClass(
                    cls.name,
                    str(root / outcome.path),
                    outcome.line,
                    outcome.state.value,
                    outcome.reason or outcome.condition,
                )
                for cls, outcome in found.classes
            ],
        )
        for found in answer.models
    ]
