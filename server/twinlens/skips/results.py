"""What a scan found: the common tests, and the outcome of each in every test class of every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from twinlens.skips.notices import Notice
from twinlens.skips.states import Outcome

COMMON_FILES: Mapping[str, str] = {
    "tests/test_modeling_common.py": "common",
    "tests/generation/test_utils.py": "GenerationMixin",
}
"""The files whose mixins hold the common tests, with the name that reports give each."""
MODELS_FOLDER = "tests/models"


@dataclass(frozen=True, slots=True)
class CommonTest:
    """One test of a shared mixin."""

    name: str
    origin: str
    path: str
    line: int
    mixin: str


@dataclass(frozen=True, slots=True, eq=False)
class ModelClass:
    """One collected test class of a model, with the outcome of every common test that it inherits."""

    model: str
    name: str
    path: str
    line: int
    end_line: int
    outcomes: Mapping[str, Outcome]

    @property
    def key(self) -> str:
        """`path::Name`, as a test runner writes it."""
        return f"{self.path}::{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What one scan of a checkout found; `models` names every model that has a test file."""

    root: Path
    models: tuple[str, ...]
    files: tuple[str, ...]
    tests: Mapping[str, CommonTest]
    classes: tuple[ModelClass, ...]
    notices: tuple[Notice, ...]
    counted: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)
    """What `count` has worked out so far."""
    _by_test: dict[str, dict[str, tuple[ModelClass, ...]]] = field(default_factory=dict, init=False, repr=False)

    def of_test(self, test: str) -> Mapping[str, tuple[ModelClass, ...]]:
        """By model: its classes that inherit a test."""
        known = self._by_test.get(test)
        if known is None:
            known = self._by_test[test] = {}
            for cls in self.classes:
                if test in cls.outcomes:
                    known[cls.model] = (*known.get(cls.model, ()), cls)
        return known

    def count(self, test: str) -> tuple[int, int]:
        """How many models inherit a test, and how many of them run it in no class."""
        if test not in self.counted:
            models = self.of_test(test).values()
            idle = sum(not any(cls.outcomes[test].runs for cls in classes) for classes in models)
            self.counted[test] = (len(models), idle)
        return self.counted[test]


def model_of(path: str) -> str:
    """The model that a test file stands for: the folder it lies in."""
    return PurePosixPath(path).parent.name
