"""Classes that are nearly one of the library's: flags, code actions, and what the client's view and compare ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from twinlens.lsp import protocol
from twinlens.lsp.documents import Document, Parsed
from twinlens.lsp.jsonrpc import Refused
from twinlens.lsp.modeling import Modeling, model_of, on_wire, read_modeling, search
from twinlens.lsp.services import Services
from twinlens.similarity.answers import Answer, RankedMatch
from twinlens.similarity.flags import is_generated, may_be_flagged, resemblance
from twinlens.similarity.inheritance import InheritRequest, ParentClass
from twinlens.similarity.service import SearchUnavailableError
from twinlens.similarity.status import IndexStatus
from twinlens.similarity.summary import summarise
from twinlens.source.definitions import Definition
from twinlens.source.library import file_stem
from twinlens.source.sanitise import model_prefixes, sanitise

CODE = "similar-class"
COMPARE = "twinlens.compareWithMatch"
INHERIT = "twinlens.inheritFromMatch"

_IN_A_VIEW = 5
_IN_A_SENTENCE = 3
_AT_ONCE = 4
"""How many definitions are asked about in one go, so that a hover need not wait for a whole file."""


def register(server: LanguageServer, services: Services) -> None:
    """Adds diagnostics, code actions and the requests of the view, of comparing and of inheriting."""
    best = _BestMatches(services)

    @services.contribute.diagnostics
    async def diagnostics(document: Document) -> Sequence[types.Diagnostic]:
        if not services.settings.current.similar_classes.flag:
            return []
        flagged = await best.flagged(document)
        return [_diagnostic(document, definition, ranked) for definition, ranked in flagged]

    @services.contribute.code_actions
    async def code_actions(document: Document, params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        found = await best.at(document, params.range)
        if found is None:
            return []
        definition, ranked = found
        flags = [problem for problem in params.context.diagnostics if problem.code == CODE]
        return _actions(document, definition, ranked, flags)

    def refresh(status: IndexStatus) -> None:
        if status.state in ("ready", "jaccard-only"):
            best.forget()
            services.editor.refresh_diagnostics()

    services.index.status.on_change(refresh)
    services.settings.on_change(lambda _: services.editor.refresh_diagnostics())
    _answer_view(server, services)
    _answer_compare(server, services)
    _answer_inherit(server, services)


class _BestMatches:
    """The first entry of each class's ranking, remembered while the document's definitions stay what they are: a
    ranking depends on the class's neighbours, too."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[str, tuple[frozenset[str], dict[str, RankedMatch | None]]] = {}

    def forget(self) -> None:
        self._known.clear()

    async def flagged(self, document: Document) -> list[tuple[Definition, RankedMatch]]:
        """The classes of the document that are so like one of the library that a person should know."""
        read = await self._services.documents.read(document, read_modeling)
        if read is None or not read.value.is_modeling or is_generated(document.text):
            return []
        lines = read.document.text.split("\n")
        asked = [definition for definition in read.value.definitions if may_be_flagged(definition, lines)]
        threshold = self._services.settings.current.similar_classes.threshold
        best = await self._of(read, asked)
        return [
            (definition, ranked)
            for definition, ranked in zip(asked, best, strict=True)
            if ranked is not None
            and resemblance(ranked.match) >= threshold
            and ranked.match.name not in (base.rpartition(".")[2] for base in definition.bases)
        ]

    async def at(self, document: Document, where: types.Range) -> tuple[Definition, RankedMatch] | None:
        """The class whose name stands on the first line of `where`, and its best match."""
        read = await self._services.documents.read(document, read_modeling)
        if read is None or not read.value.is_modeling:
            return None
        line = where.start.line + 1
        named = [found for found in read.value.definitions if found.kind == "class" and found.line == line]
        for definition in named:
            (ranked,) = await self._of(read, [definition])
            if ranked is not None:
                return definition, ranked
        return None

    async def _of(self, read: Parsed[Modeling], definitions: Sequence[Definition]) -> list[RankedMatch | None]:
        sanitised = {asked.name: asked.sanitised for asked in read.value.query.definitions}
        together = frozenset([model_of(self._services, read), *sanitised.values()])
        then, known = self._known.get(read.document.uri, (frozenset(), {}))
        if then != together:
            known = {}
            self._known[read.document.uri] = together, known
        unknown = [definition.name for definition in definitions if sanitised[definition.name] not in known]
        for start in range(0, len(unknown), _AT_ONCE):
            names = unknown[start : start + _AT_ONCE]
            try:
                answers = await search(self._services, read, names, 1)
            except SearchUnavailableError:
                # The status item says why; when there is an index again, the diagnostics are pulled again.
                return [None] * len(definitions)
            for name, answer in zip(names, answers, strict=True):
                known[sanitised[name]] = answer.ranked[0] if answer.ranked else None
        return [known.get(sanitised[definition.name]) for definition in definitions]


def _diagnostic(document: Document, definition: Definition, ranked: RankedMatch) -> types.Diagnostic:
    match = ranked.match
    scores = [] if match.embedding is None else [f"embedding {match.embedding:.2f}"]
    scores.append(f"Jaccard {match.jaccard:.2f}")
    line = max(0, match.line - 1)
    place = types.Location(Path(match.path).as_uri(), types.Range(types.Position(line, 0), types.Position(line, 0)))
    return types.Diagnostic(
        document.lines.name_range(definition.line, definition.name_column, definition.name),
        f"Nearly {match.name} ({match.model}): {', '.join(scores)}",
        severity=types.DiagnosticSeverity.Information,
        code=CODE,
        source="Twinlens",
        related_information=[types.DiagnosticRelatedInformation(place, f"{match.name} of {match.model}")],
    )


def _actions(
    document: Document, definition: Definition, ranked: RankedMatch, flags: list[types.Diagnostic]
) -> list[types.CodeAction]:
    match = ranked.match
    arguments = [document.uri, definition.name, {"model": match.model, "name": match.name, "path": match.path}]
    modular = f"modular_{file_stem(document.path)}.py" if document.path else "a modular file"
    kind = types.CodeActionKind.QuickFix if flags else types.CodeActionKind.RefactorRewrite
    actions = [
        types.CodeAction(title, kind, flags or None, command=types.Command(title, command, arguments=arguments))
        for title, command in (
            (f"Compare with {match.name}", COMPARE),
            (f"Inherit from {match.name} in {modular}", INHERIT),
        )
    ]
    if flags:
        line = document.lines.lines[definition.line - 1]
        end = document.lines.position(definition.line, len(line.encode()))
        silence = types.TextEdit(types.Range(end, end), "  # twinlens: ignore[similar-class]")
        edit = types.WorkspaceEdit({document.uri: [silence]})
        actions.append(types.CodeAction("Don't flag this class", types.CodeActionKind.QuickFix, flags, edit=edit))
    return actions


def _answer_view(server: LanguageServer, services: Services) -> None:
    @server.feature(protocol.SIMILAR_IN_FILE)
    async def similar_in_file(params: protocol.SimilarInFileParams) -> protocol.SimilarInFileResult:
        read = await services.documents.read(services.documents.get(params.uri), read_modeling)
        if read is None or not read.value.is_modeling:
            return protocol.SimilarInFileResult("This file holds no model code.", "", [])
        definitions: list[protocol.SimilarDefinition] = []
        all_answers: dict[str, Answer] = {}
        for start in range(0, len(read.value.definitions), _AT_ONCE):
            asked = read.value.definitions[start : start + _AT_ONCE]
            try:
                answers = await search(services, read, [definition.name for definition in asked], _IN_A_VIEW)
            except SearchUnavailableError as error:
                return protocol.SimilarInFileResult(str(error), "", [])
            all_answers.update(zip((found.name for found in asked), answers, strict=True))
            definitions += [
                protocol.SimilarDefinition(found.name, found.kind, found.line, list(map(on_wire, answer.ranked)))
                for found, answer in zip(asked, answers, strict=True)
            ]
        status = services.index.status.current
        note = None if status.state == "ready" else status.message
        return protocol.SimilarInFileResult(note, _coverage(all_answers), definitions)


def _coverage(answers: Mapping[str, Answer]) -> str:
    """One sentence: the models that cover most of the file's definitions."""
    covered = [
        f"{found.model} ({len(found.definitions)} of {len(answers)}, mean score {found.score:.2f})"
        for found in summarise(answers)[:_IN_A_SENTENCE]
    ]
    return f"Most like {', then '.join(covered)}." if covered else "No model of the library resembles this file."


def _answer_compare(server: LanguageServer, services: Services) -> None:
    @server.feature(protocol.CLASS_TEXT)
    async def class_text(params: protocol.ClassTextParams) -> protocol.ClassTextResult:
        document = services.documents.get(params.uri)
        read = await services.documents.read(document, read_modeling)
        definitions = read.value.definitions if read else ()
        found = next((definition for definition in definitions if definition.name == params.name), None)
        if found is None:
            raise Refused(f"{params.name} is no longer in {document.path or document.uri}.")
        text = found.source + "\n"
        if params.normalised:
            hints = (file_stem(document.path),) if document.path else ()
            prefixes = model_prefixes([d.name for d in definitions if d.kind == "class"], hints)
            text = sanitise(text, prefixes, hints)
        return protocol.ClassTextResult(text)


def _answer_inherit(server: LanguageServer, services: Services) -> None:
    @server.feature(protocol.INHERIT)
    async def inherit(params: protocol.InheritParams) -> protocol.InheritResult:
        document = services.documents.get(params.uri)
        service = services.index.service
        read = await services.documents.read(document, read_modeling)
        if document.path is None or read is None or service is None:
            raise Refused("Save the file as modeling_<model>.py first: the modular file stands beside it.")
        modular = document.path.with_name(f"modular_{file_stem(document.path)}.py")
        try:
            present = services.documents.get(modular.as_uri()).text
        except FileNotFoundError:
            present = None
        parent = ParentClass(params.parent.model, params.parent.name, params.parent.path)
        request = InheritRequest(
            document.text, str(document.path), params.name, model_of(services, read), present, parent
        )
        try:
            written = await service.inherit(request)
        except SearchUnavailableError as error:
            raise Refused(str(error)) from error
        return protocol.InheritResult(written.path, written.text, list(written.notes))
