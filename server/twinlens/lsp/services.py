"""What features share."""

from __future__ import annotations

from dataclasses import dataclass

from twinlens.lsp.checkouts import Checkouts
from twinlens.lsp.contributions import Contributions
from twinlens.lsp.documents import Documents
from twinlens.lsp.editor import Editor
from twinlens.lsp.library_index import LibraryIndex
from twinlens.lsp.protocol import InitializationOptions
from twinlens.lsp.settings import Live, Settings


@dataclass(frozen=True, slots=True)
class Services:
    """Handed to each feature's `register`; contributions.py tells how they are used.

    `session` is what the client said at `initialize`; `settings` is read before `contribute.start` runs.
    """

    session: Live[InitializationOptions]
    settings: Live[Settings]
    documents: Documents
    index: LibraryIndex
    checkouts: Checkouts
    editor: Editor
    contribute: Contributions
