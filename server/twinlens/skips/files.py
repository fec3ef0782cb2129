"""A checkout's files: their text, from disk or from an unsaved editor, and their facts, remembered by content."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from pathlib import Path

from twinlens.skips.facts import File
from twinlens.skips.memory import Memory
from twinlens.skips.parse import parse
from twinlens.skips.reparse import reparse

ABSENT = ""
"""Stands for the content of a file that is not there."""


class Files:
    """The facts of the files below a root, each parsed once. Paths are relative to it, with forward slashes.

    `memory` holds facts of earlier runs; `parsing` is entered for each parse, where threads must not do so at once.
    An edited file that does not parse keeps the facts of its last text that did.
    """

    def __init__(
        self, root: Path, memory: Memory | None = None, parsing: AbstractContextManager[object] | None = None
    ) -> None:
        self.root = root
        self._memory = memory
        self._parsing = parsing or nullcontext()
        self._edited: dict[str, str] = {}
        self._parsed: dict[str, str] = {}
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
        if text is None:
            self._edited.pop(path, None)
            self._parsed.pop(path, None)
            return self.reread(path)
        self._edited[path] = text
        digest, before = _digest(_encoded(text)), self._facts.get(path)
        unchanged, self._digests[path] = digest == self._digests.get(path), digest
        if before is not None and unchanged:
            self._parsed[path] = text
            return False
        after = self._facts_of_edited(path, text, before)
        if after.error and before is not None:
            return False
        self._facts[path], self._parsed[path] = after, text
        return before != after

    def reread(self, path: str) -> bool:
        """Read a file anew, as far as anybody asked for it; tells if a fact changed."""
        self._digests.pop(path, None)
        if path not in self._facts:
            return False
        before = self._facts.pop(path)
        return before != self.facts(path)

    def _facts_of_edited(self, path: str, text: str, before: File | None) -> File:
        last = self._parsed.get(path)
        with self._parsing:
            quick = reparse(last, before, text) if last is not None and before is not None else None
            return quick if quick is not None else parse(_encoded(text))

    def _facts_of(self, path: str, content: bytes) -> File:
        digest = self._digests[path]
        remembers = self._memory is not None and path not in self._edited
        known = self._memory.recall(digest) if self._memory is not None and remembers else None
        if known is None:
            with self._parsing:
                known = parse(content)
            if self._memory is not None and remembers:
                self._memory.keep(digest, known)
        return known

    def _content(self, path: str) -> bytes | None:
        if path in self._edited:
            return _encoded(self._edited[path])
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


def _digest(content: bytes | None) -> str:
    return ABSENT if content is None else blake2b(content, digest_size=16).hexdigest()
