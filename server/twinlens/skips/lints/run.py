"""Runs every lint over one test file of a scanned checkout."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from twinlens.skips.classes import TestClass
from twinlens.skips.lints.dead_skips import dead_skips
from twinlens.skips.lints.decorators import misplaced_decorators, uncalled_decorators
from twinlens.skips.lints.finding import Finding
from twinlens.skips.lints.flags import dead_flags, shadowed_tests
from twinlens.skips.lints.overrides import Popularity, empty_overrides, rare_skips, skips_without_reason
from twinlens.skips.lints.uncollected import uncollected_tests
from twinlens.skips.results import COMMON_FILES, ModelClass
from twinlens.skips.scan import Linked

RARE = 3
"""Up to this many models that skip a test make each of their skips rare."""


class Linter:
    """The lints of one linked scan. `rare` is the most models whose skip of one test still counts as rare."""

    def __init__(self, linked: Linked, rare: int = RARE) -> None:
        self._linked = linked
        self._classes = linked.classes
        self._rare = rare

    def all_findings(self) -> Iterator[Finding]:
        """The findings of every model test file and common file."""
        for path in (*COMMON_FILES, *self._linked.scan.files):
            yield from self.findings(path)

    def findings(self, path: str) -> list[Finding]:
        """The findings of one file, in the order of its lines; none for a file that the scan does not know."""
        module = self._classes.modules.module(path)
        if module is None or not (path in COMMON_FILES or path in self._linked.files):
            return []
        found: set[Finding] = set()
        for facts in module.file.classes:
            found.update(self._of_class(self._classes.resolve(module, facts), path))
        ignored = set(module.file.ignored)
        told = [finding for finding in found if (finding.line, finding.code) not in ignored]
        return sorted(told, key=lambda finding: (finding.line, finding.column, finding.code))

    def _of_class(self, cls: TestClass, path: str) -> Iterator[Finding]:
        yield from misplaced_decorators(cls)
        yield from uncalled_decorators(cls, self._classes)
        if path in COMMON_FILES:
            return
        yield from uncollected_tests(cls, self._reached, cls.module.file.reads)
        if cls.key not in self._reached:
            return
        yield from shadowed_tests(cls)
        yield from empty_overrides(cls, self._classes)
        yield from skips_without_reason(cls, self._classes)
        answers = self._answers.get(cls.key)
        if answers is not None:
            yield from dead_skips(cls, self._classes)
            yield from dead_flags(cls, self._classes.modules)
            yield from rare_skips(cls, answers, self._popularity, self._rare)

    @cached_property
    def _reached(self) -> frozenset[str]:
        return frozenset().union(*(file.reached for file in self._linked.files.values()))

    @cached_property
    def _answers(self) -> dict[str, ModelClass]:
        return {cls.key: cls for cls in self._linked.scan.classes}

    @cached_property
    def _popularity(self) -> Popularity:
        return Popularity(self._linked.scan)
