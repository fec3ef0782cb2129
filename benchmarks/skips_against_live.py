"""Whether the skip scanner is right: `python benchmarks/skips_against_live.py CHECKOUT`.

Imports every model test file of a transformers checkout and holds each row of class and test against the live class:
whether a runner finds a callable under the name, and whether unittest or pytest has marked it as skipped. Needs an
environment in which the checkout's tests import; files that do not are counted and left out.

A row agrees where both say the same. A gate that is shut here (no accelerator, not asked for slow tests) hides what is
behind it, so a live skip also agrees with a test that never runs for another reason; a skip in a test's body leaves no
mark on the class, so such rows are counted apart.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import unittest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from twinlens.skips.files import Files
from twinlens.skips.results import ModelClass
from twinlens.skips.scan import scan
from twinlens.skips.states import Outcome, State

DISAGREEMENTS_SHOWN = 20
MAY_BE_MARKED = frozenset(State) - {State.RUNS, State.SHADOWED}


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", default=os.environ.get("TWINLENS_TRANSFORMERS"), type=Path)
    root = parser.parse_args().checkout
    if root is None:
        parser.error("name a transformers checkout")
    found = scan(Files(root.resolve())).scan
    os.chdir(root)
    sys.path[:0] = [str(root.resolve()), str(root.resolve() / "src")]
    modules, failed = imported(found.files)

    table: Counter[tuple[str, str]] = Counter()
    disagreements: list[str] = []
    in_body = 0
    for cls in found.classes:
        live_class = getattr(modules.get(cls.path), cls.name, None)
        for name, outcome in rows(cls) if live_class is not None else ():
            live = live_state(live_class, name)
            table[live, str(outcome.state)] += 1
            if live == "collected" and outcome.state is State.SKIPPED:
                in_body += 1
            elif not agrees(live, outcome):
                disagreements.append(f"{cls.key}::{name}: live {live}, scanned {outcome.state}: {outcome.reason}")
    total = table.total()
    print(f"{len(modules)} of {len(found.files)} files import; {', '.join(failed) or 'none'} do not")
    for (live, state), count in sorted(table.items()):
        print(f"  live {live:10} scanned {state:12} {count:7,}")
    print(f"{in_body} rows are skipped in their bodies, which a live class does not tell")
    print(f"{total - len(disagreements):,} of {total:,} rows agree: {1 - len(disagreements) / total:.2%}")
    for line in disagreements[:DISAGREEMENTS_SHOWN]:
        print(f"  {line}")
    missing = [key for key in live_keys(modules) if key not in {cls.key for cls in found.classes}]
    print(f"{len(missing)} live classes with common tests were not scanned {missing[:5]}")


def imported(paths: tuple[str, ...]) -> tuple[dict[str, ModuleType], list[str]]:
    """The test modules by path, and the paths of those that do not import here."""
    modules: dict[str, ModuleType] = {}
    failed: list[str] = []
    for path in paths:
        try:
            modules[path] = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        except (ImportError, RuntimeError, OSError, AttributeError, unittest.SkipTest):
            failed.append(Path(path).stem)
    return modules, failed


def rows(cls: ModelClass) -> Iterator[tuple[str, Outcome]]:
    """Each common test of a class; of a parameterised one its variants, whose names are what a runner finds."""
    for test, outcome in cls.outcomes.items():
        yield from outcome.variants or [(test, outcome)]


def live_state(cls: Any, name: str) -> str:
    """What a runner sees of a test before it runs it."""
    test = getattr(cls, name, None)
    if not callable(test):
        return "absent"
    marks = [mark for holder in (cls, test) for mark in getattr(holder, "pytestmark", ())]
    marked = any(getattr(holder, "__unittest_skip__", False) for holder in (cls, test))
    return "skipped" if marked or any(mark.name == "skip" for mark in marks) else "collected"


def agrees(live: str, outcome: Outcome) -> bool:
    """Whether the live class allows what was scanned."""
    if live == "absent":
        return outcome.state is State.SHADOWED
    if live == "skipped":
        return outcome.state in MAY_BE_MARKED
    return outcome.state is not State.SHADOWED


def live_keys(modules: dict[str, ModuleType]) -> Iterator[str]:
    """The collected classes that inherit a common mixin, by their keys."""
    homes = (
        ("tests.test_modeling_common", "ModelTesterMixin"),
        ("tests.generation.test_utils", "GenerationTesterMixin"),
    )
    mixins = tuple(getattr(sys.modules[home], name) for home, name in homes if home in sys.modules)
    for path, module in modules.items():
        for name, member in vars(module).items():
            if isinstance(member, type) and issubclass(member, unittest.TestCase) and issubclass(member, mixins):
                yield f"{path}::{name}"


if __name__ == "__main__":
    main()
