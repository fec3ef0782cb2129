"""One checkout under an editor's eyes: scanned once, then kept up with files that are typed in or change on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from twinlens.skips.files import Files
from twinlens.skips.memory import Memory
from twinlens.skips.results import COMMON_FILES, MODELS_FOLDER
from twinlens.skips.scan import Linked, relink, scan


class Watch:
    """A checkout's scan as it is now. Not for several threads at once; `parsing` is entered for each file's parse."""

    def __init__(
        self, root: Path, cache: Path | None = None, parsing: AbstractContextManager[object] | None = None
    ) -> None:
        self.root = root
        self._memory = Memory(cache, root) if cache is not None else None
        self._files = Files(root, self._memory, parsing)
        self._typed: dict[str, str] = {}
        self._changed: frozenset[str] = frozenset()
        self._linked: Linked | None = None

    @property
    def linked(self) -> Linked | None:
        """The last scan; `None` before the first."""
        return self._linked

    def update(self, typed: Mapping[str, str]) -> Linked:
        """The scan with these texts in place of their files; the first one takes seconds, later ones milliseconds.

        Raises `ScanError` where the checkout has no model tests, `OSError` where the memory can't be written.
        """
        changed, self._changed = self._changed | self._take(typed), frozenset()
        if self._linked is None:
            self._linked = scan(self._files)
            if self._memory is not None:
                self._memory.save(set(self._files.consulted().values()))
        elif changed:
            self._linked = relink(self._linked, self._files, changed)
        return self._linked

    def changed_on_disk(self, paths: Iterable[Path]) -> bool:
        """Take up files that were made, changed or deleted; tells if the next update may differ."""
        inside = {path.relative_to(self.root).as_posix() for path in paths if path.is_relative_to(self.root)}
        changed = frozenset(path for path in inside if self._files.reread(path))
        self._changed |= changed
        come_or_gone = self._linked is not None and self._files.model_tests(MODELS_FOLDER) != self._linked.scan.files
        if come_or_gone:
            self._linked = None
        return bool(changed) or come_or_gone

    def _take(self, typed: Mapping[str, str]) -> frozenset[str]:
        anew = {path for path, text in typed.items() if self._typed.get(path) != text and self._files.edit(path, text)}
        saved = {path for path in self._typed.keys() - typed.keys() if self._files.edit(path, None)}
        self._typed = dict(typed)
        return frozenset(anew | saved)


def find_checkout(path: Path) -> Path | None:
    """The checkout that a file or folder lies in: the nearest folder with model tests and a common test file."""
    return next((folder for folder in (path, *path.parents) if is_checkout(folder)), None)


def is_checkout(folder: Path) -> bool:
    """Whether a folder is the root of a checkout."""
    return (folder / MODELS_FOLDER).is_dir() and any((folder / path).is_file() for path in COMMON_FILES)
