"""How capturing and patching are declared: diagnostics with fixes and pages, hover on recorders, lenses on patches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from twinlens.checks.assembly import Assembly
from twinlens.checks.check import page_path
from twinlens.checks.engine import check_text, is_concerned
from twinlens.checks.finding import Finding, Span
from twinlens.checks.patches import REGISTER, matches, registrations
from twinlens.checks.recorded import Recorded, recorded_at
from twinlens.checks.rules import CHECKS
from twinlens.checks.subject import Subject
from twinlens.checks.world import Sources, World
from twinlens.lsp import protocol
from twinlens.lsp.documents import Document, Parsed
from twinlens.lsp.services import Services

SOURCE = "Twinlens"
EXPLAIN = "twinlens.explainCheck"
SHOW_MATCHES = "twinlens.showPatchMatches"

_CODES = frozenset(check.code for check in CHECKS)


def register(server: LanguageServer, services: Services) -> None:
    """Adds diagnostics, code actions, hover, lenses, and the request for the classes that a key matches."""
    reading = _Reading(services)

    @services.contribute.diagnostics
    async def diagnostics(document: Document) -> Sequence[types.Diagnostic]:
        found = await reading.findings(document)
        return [_diagnostic(found.document, finding) for finding in found.value] if found else []

    @services.contribute.code_actions
    async def code_actions(document: Document, params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        problems = [problem for problem in params.context.diagnostics if problem.code in _CODES]
        found = await reading.findings(document) if problems else None
        return [action for problem in problems for action in _actions(document, problem, found)] if found else []

    @services.contribute.hover
    async def hover(document: Document, position: types.Position) -> str | None:
        if not is_concerned(document.text):
            return None
        line, column = document.lines.place(position)
        try:
            found = await asyncio.to_thread(lambda: recorded_at(reading.subject(document), line, column))
        except SyntaxError:
            return None
        return _recorded_as_markdown(found) if found else None

    @services.contribute.code_lenses
    async def code_lenses(document: Document) -> Sequence[types.CodeLens]:
        if REGISTER not in document.text:
            return []
        try:
            return await asyncio.to_thread(lambda: list(_lenses(document, reading.subject(document))))
        except SyntaxError:
            return []

    @server.feature(protocol.PATCH_MATCHES)
    async def patch_matches(params: protocol.PatchMatchesParams) -> protocol.PatchMatchesResult:
        document = services.documents.get(params.uri)
        return await asyncio.to_thread(lambda: _matches_on_wire(reading.subject(document), params.key))

    def refresh(_: object) -> None:
        if reading.library_changed():
            services.editor.refresh_diagnostics()
            services.editor.refresh_lenses()

    services.index.status.on_change(refresh)


class _Reading:
    """Reads documents with the library that is searched, once that is known.

    Effect: keeps the files that were parsed beside them, each until it changes.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sources = Sources()
        self._models: tuple[Path, ...] = ()
        self._check = self._checker()

    def library_changed(self) -> bool:
        """Take over the library of now; whether it is another one than before."""
        service = self._services.index.service
        library = service.library if service else None
        models = library.roots if library else self._models
        if models == self._models:
            return False
        self._models = models
        self._check = self._checker()
        return True

    async def findings(self, document: Document) -> Parsed[list[Finding]] | None:
        """The findings in the document, or in its last version that parsed."""
        return await self._services.documents.read(document, self._check)

    def subject(self, document: Document) -> Subject:
        """The document as the checks read it. Raises `SyntaxError` where it does not parse."""
        assembly = self._assembly()
        return Subject(assembly.world.module_of(_path(document), document.text), assembly)

    def _assembly(self) -> Assembly:
        return Assembly(World(self._models, self._sources))

    def _checker(self) -> Callable[[Document], list[Finding]]:
        """A reader of its own for each library, since findings are remembered by reader."""

        def check(document: Document) -> list[Finding]:
            return check_text(_path(document), document.text, self._assembly())

        return check


def _path(document: Document) -> Path:
    return document.path or Path("untitled.py")


def _range(document: Document, span: Span) -> types.Range:
    return document.lines.range(span.line, span.column, span.end_line, span.end_column)


def _diagnostic(document: Document, finding: Finding) -> types.Diagnostic:
    return types.Diagnostic(
        _range(document, finding.span),
        finding.message,
        severity=types.DiagnosticSeverity.Warning,
        code=finding.code,
        code_description=types.CodeDescription(page_path(finding.code).as_uri()),
        source=SOURCE,
    )


def _actions(document: Document, problem: types.Diagnostic, found: Parsed[list[Finding]]) -> Iterator[types.CodeAction]:
    if found.document.text != document.text:
        return
    for finding in found.value:
        is_it = finding.code == problem.code and finding.message == problem.message
        if is_it and finding.fix is not None and _range(document, finding.span) == problem.range:
            edits = [types.TextEdit(_range(document, edit.span), edit.text) for edit in finding.fix.edits]
            yield types.CodeAction(
                finding.fix.title,
                types.CodeActionKind.QuickFix,
                [problem],
                is_preferred=True,
                edit=types.WorkspaceEdit({document.uri: edits}),
            )
    title = f"Explain {problem.code}"
    command = types.Command(title, EXPLAIN, arguments=[page_path(str(problem.code)).as_uri()])
    yield types.CodeAction(title, types.CodeActionKind.QuickFix, [problem], command=command)
    yield _silence(document, problem)


def _silence(document: Document, problem: types.Diagnostic) -> types.CodeAction:
    number = problem.range.start.line
    line = document.lines.lines[number]
    indent = line[: len(line) - len(line.lstrip())]
    start = types.Position(number, 0)
    # A line of its own above: what follows the finding on its line may be a string that goes on.
    edit = types.TextEdit(types.Range(start, start), f"{indent}# twinlens: ignore[{problem.code}]\n")
    return types.CodeAction(
        f"Ignore {problem.code} here",
        types.CodeActionKind.QuickFix,
        [problem],
        edit=types.WorkspaceEdit({document.uri: [edit]}),
    )


def _recorded_as_markdown(found: Recorded) -> str:
    entry = found.entry
    what = f"element {entry.index} of what each returns, or all of it where that is no tuple"
    if entry.key == "hidden_states":
        what = f"the input of the first, then {what}"
    lines = [f"**Recorded as `{entry.key}`**, when `{found.flag}=True`: {what}."]
    for model in found.models:
        paths = ", ".join(f"`{path}`" for path in model.paths) if model.paths else "no module of it"
        lines.append(f"- `{model.model}`: {paths}")
    if not found.models:
        lines.append("No forward of this file that follows the declaration is decorated with `@capture_outputs`.")
    return "\n\n".join([lines[0], "\n".join(lines[1:])])


def _lenses(document: Document, subject: Subject) -> Iterator[types.CodeLens]:
    if not subject.assembly.world.models:
        return
    for registration in registrations(subject.module):
        place = _range(document, Span.of(registration.call))
        for entry in registration.entries:
            found = matches(subject, entry.key)
            count = len(found.names) if found else 0
            title = f"{entry.key}: {count} {'class' if count == 1 else 'classes'}"
            command = types.Command(title, SHOW_MATCHES, arguments=[document.uri, entry.key])
            yield types.CodeLens(types.Range(place.start, place.start), command)


def _matches_on_wire(subject: Subject, key: str) -> protocol.PatchMatchesResult:
    found = matches(subject, key)
    library = subject.assembly.world.library_classes
    classes: list[protocol.PatchedClass] = []
    for name in found.names if found else ():
        own = subject.module.classes.get(name)
        if own is not None and name not in library:
            classes.append(protocol.PatchedClass(name, str(subject.module.path), own.node.lineno))
        classes += [protocol.PatchedClass(name, str(header.path), header.line) for header in library.get(name, ())]
    return protocol.PatchMatchesResult(classes)
