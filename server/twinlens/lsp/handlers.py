"""One handler a method of LSP, which joins what the features contribute (contributions.py)."""

from __future__ import annotations

import hashlib
import json
from itertools import chain

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from twinlens.lsp.contributions import answers
from twinlens.lsp.services import Services


def join_contributions(server: LanguageServer, services: Services, converter: Converter) -> None:
    """Registers the handler of each method to which features contribute."""
    contribute, get = services.contribute, services.documents.get

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        parts = await answers(contribute.to_hover, get(params.text_document.uri), params.position)
        markdown = "\n\n---\n\n".join(filter(None, parts))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, markdown)) if markdown else None

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        return list(chain(*await answers(contribute.to_code_lenses, get(params.text_document.uri))))

    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.Refactor])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        return list(chain(*await answers(contribute.to_code_actions, get(params.text_document.uri), params)))

    pulled = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="twinlens")

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, pulled)
    async def diagnostics(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        found = list(chain(*await answers(contribute.to_diagnostics, get(params.text_document.uri))))
        result_id = _digest(converter.unstructure(found))
        if result_id == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id)
        return types.RelatedFullDocumentDiagnosticReport(found, result_id=result_id)


def _digest(plain: object) -> str:
    return hashlib.blake2b(json.dumps(plain).encode(), digest_size=12).hexdigest()
