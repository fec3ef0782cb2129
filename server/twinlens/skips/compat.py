"""Upstream's own counting, fault for fault: one regular expression over each file, the last `def` of a name wins.

It is kept so that old results can be reproduced and compared; `report` has the truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlens.skips.notices import ScanError
from twinlens.skips.results import COMMON_FILES, MODELS_FOLDER, model_of

_COMMON_TEST = re.compile(r"^\s*def\s+(test_[A-Za-z0-9_]+)", re.MULTILINE)
_DECORATED_TEST = re.compile(r"((?:^\s*@.*?\n)*?)^\s*def\s+(test_[A-Za-z0-9_]+)\b", re.MULTILINE)
_REASONS = (
    re.compile(r'reason\s*=\s*["\'](.*?)["\']'),
    re.compile(r'\((?:.*?,\s*)?["\'](.*?)["\']\)'),
)
UNKNOWN_ORIGIN = "unknown"


@dataclass(frozen=True, slots=True)
class CompatScan:
    """What upstream's scanner would see: every test name with its origin, and each model's skips with their reasons."""

    origins: Mapping[str, str]
    models: tuple[str, ...]
    file_count: int
    skips: Mapping[str, Mapping[str, str]]
    """Model, then test: the reason of the skip."""

    def entry(self, test: str) -> dict[str, Any]:
        """One test's entry, as upstream writes it."""
        skipped = {model: self.skips[model][test] for model in self.models if test in self.skips[model]}
        proportion = len(skipped) / len(self.models) if self.models else 0.0
        return {
            "origin": self.origins.get(test, UNKNOWN_ORIGIN),
            "models_ran": [model for model in self.models if model not in skipped],
            "models_skipped": list(skipped),
            "skipped_proportion": round(proportion, 4),
            "reasons_skipped": sorted(f"{model}: {reason}" for model, reason in skipped.items()),
        }


def scan_as_upstream(root: Path) -> CompatScan:
    """Scan a checkout as upstream's script does. Raises `ScanError` where it has no folder of model tests."""
    folder = root / MODELS_FOLDER
    if not folder.is_dir():
        raise ScanError(
            f"{root} has no {MODELS_FOLDER}; run from the root of a transformers checkout, or name it with --root"
        )
    origins: dict[str, str] = {}
    for path, origin in COMMON_FILES.items():
        if (root / path).is_file():
            origins |= dict.fromkeys(_COMMON_TEST.findall((root / path).read_text(encoding="utf-8")), origin)
    last: dict[str, dict[str, str | None]] = {}
    paths = sorted(folder.rglob("test_modeling_*.py"))
    for path in paths:
        tests = last.setdefault(model_of(path.as_posix()), {})
        for decorators, test in _DECORATED_TEST.findall(path.read_text(encoding="utf-8")):
            tests[test] = _reason(decorators) if "skip" in decorators else None
    skips = {
        model: {test: reason for test, reason in tests.items() if reason is not None} for model, tests in last.items()
    }
    return CompatScan(origins, tuple(sorted(skips)), len(paths), skips)


def _reason(decorators: str) -> str:
    for pattern in _REASONS:
        found = pattern.search(decorators)
        if found:
            return found.group(1)
    return decorators.strip().split("\n")[-1].strip()
