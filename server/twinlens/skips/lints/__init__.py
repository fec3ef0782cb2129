"""Faults in how tests are skipped, each with a code: what a linter of skips says of one test file."""

from __future__ import annotations

from twinlens.skips.lints.catalogue import CATALOGUE, Lint
from twinlens.skips.lints.finding import Finding, Fix
from twinlens.skips.lints.run import RARE, Linter

__all__ = ["CATALOGUE", "RARE", "Finding", "Fix", "Lint", "Linter"]
