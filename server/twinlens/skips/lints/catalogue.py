"""The lints by code, each with what it finds and why that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lint:
    """One lint. `serious` ones mean that something other than what is written happens."""

    code: str
    title: str
    why: str
    serious: bool


_LINTS = (
    Lint(
        "skip-overrides-nothing",
        "a skip that no test stands behind",
        "It adds a skipped test and takes none away. Often the test was renamed, the skip was copied from another "
        "model, or the test is parameterised, so that its variants have names of their own.",
        serious=True,
    ),
    Lint(
        "stale-variant",
        "a skip of a variant that does not exist",
        "The parameterised test has no variant of that name any more, so the variants that it has all run.",
        serious=True,
    ),
    Lint(
        "test-never-collected",
        "a test that no runner finds",
        "Runners collect TestCase classes and Test… classes only, and of two tests of one name only the last.",
        serious=True,
    ),
    Lint(
        "shadowed-test",
        "an assignment that hides an inherited test",
        "The name holds no function any more, so the test does not even show up as skipped. "
        "A skip with a reason says the same and can be found.",
        serious=True,
    ),
    Lint(
        "marker-order",
        "a decorator above parameterized.expand",
        "parameterized.expand leaves None under the test's name. What stands above it decorates None: the variants "
        "never get the mark, and a mark on None is collected as a test that tests nothing.",
        serious=True,
    ),
    Lint(
        "decorator-not-called",
        "a decorator that has to be called",
        "Without its parentheses it takes the test for its argument and returns a decorator. That is what gets "
        "collected: it passes, and the test never runs.",
        serious=True,
    ),
    Lint(
        "flag-nobody-reads",
        "a flag that nothing reads",
        "No test that the class inherits looks at it, so it neither switches anything on nor off.",
        serious=False,
    ),
    Lint(
        "empty-override",
        "an override that does nothing",
        "It passes, so the test counts as run. A skip with a reason says that it isn't.",
        serious=False,
    ),
    Lint(
        "skip-without-reason",
        "a skip that gives no reason",
        "Whoever wants to remove it has nothing to check.",
        serious=False,
    ),
    Lint(
        "rare-skip",
        "a test that nearly every other model runs",
        "If hardly any other model skips it, the fault may be in the model and not in the test.",
        serious=False,
    ),
)

CATALOGUE: Mapping[str, Lint] = {lint.code: lint for lint in _LINTS}
