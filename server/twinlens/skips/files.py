"""A checkout's files: their text, from disk or from an unsaved editor, and their facts, remembered by content."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from twinlens.skips.facts import File
from twinlens.skips.memory import Memory
from twinlens.skips.parse import parse

ABSENT = ""
"""Stands for the content of a file that is not there."""


class Files:
    """The facts of the files below a root, each parsed once. Paths are relative to it, with forward slashes.

    `memory` holds facts of earlier runs. An edited file that does not parse keeps the facts of its last text that did.
    """

    def __init__(self, root: Path, memory: Memory | None = None) -> None:
        self.root = root
        self._memory = memory
        self._edited: dict[str, str] = {}
        self._facts: dict[str, File | None] = {}
        self._digests: dict[str, str] = {}

    def model_tests(self, folder: str) -> tuple[str, ...]:
        """Every `test_modeling_*.py` below a folder, sorted."""
        found = (self.root / folder).rglob("test_modeling_*.py")
        return tuple(sorted(path.relative_to(self.root).as_posix() for path in found))

    def facts(self, path: str) -> File | None:
        """The facts of a file, `None` where there is none."""
        if path not in self._facts:
            content = self._content(path)
            self._digests[path] = _digest(content)
            self._facts[path] = None if content is None else self._facts_of(path, content)
        return self._facts[path]

    def digest(self, path: str) -> str:
        """What a file holds now, as a hash; `ABSENT` where there is no such file."""
        if path not in self._digests:
            self._digests[path] = _digest(self._content(path))
        return self._digests[path]

    def consulted(self) -> dict[str, str]:
        """The digest of every file that facts were asked of, and of every file that was looked for in vain."""
        return {path: self._digests[path] for path in self._facts}

    def edit(self, path: str, text: str | None) -> bool:
        """Take an editor's text in place of the disk's, or with `None` the disk's again; tells if a fact changed."""
        before = self._facts.get(path)
        if text is None:
            self._edited.pop(path, None)
        else:
            self._edited[path] = text
        changed = self.reread(path)
        after = self._facts[path]
        if text is not None and after is not None and after.error and before is not None:
            self._facts[path] = before
            return False
        return changed

    def reread(self, path: str) -> bool:
        """Read a file anew, as far as anybody asked for it; tells if a fact changed."""
        self._digests.pop(path, None)
        if path not in self._facts and path not in self._edited:
            return False
        before = self._facts.pop(path, None)
        return before != self.facts(path)

    def _facts_of(self, path: str, content: bytes) -> File:
        if self._memory is None or path in self._edited:
            return parse(content)
        digest = self._digests[path]
        known = self._memory.recall(digest)
        if known is None:
            known = parse(content)
            self._memory.keep(digest, known)
        return known

    def _content(self, path: str) -> bytes | None:
        if path in self._edited:
            return self._edited[path].encode("utf-8", errors="surrogatepass")
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None


def _digest(content: bytes | None) -> str:
    return ABSENT if content is None else blake2b(content, digest_size=16).hexdigest()
