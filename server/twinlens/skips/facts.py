"""What one test file says, as far as skips are concerned: small immutable records, no syntax tree.

A record holds expressions as source text. They are evaluated later, when it is known which class asks and what the
names mean there. Lines are 1-based, columns 0-based.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FunctionRole = Literal["method", "property", "classmethod", "staticmethod"]
CallTarget = Literal["super", "self", "function"]
StopKind = Literal["return", "continue", "raise"]


@dataclass(frozen=True, slots=True)
class Decorator:
    """One decorator: its dotted name, and its arguments as source text (`None` where it is not called)."""

    name: str
    line: int
    arguments: tuple[str, ...] | None
    keywords: tuple[tuple[str, str], ...]
    end_line: int


@dataclass(frozen=True, slots=True)
class Skip:
    """`self.skipTest(...)`, `raise SkipTest(...)` or `pytest.skip(...)`: the test ends here as skipped."""

    reason: str
    line: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The function, or one turn of its loop, ends here without a skip."""

    kind: StopKind
    line: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may itself skip: the overridden method, another method, or a function that is given `self`."""

    target: CallTarget
    name: str
    line: int
    prepares: bool


@dataclass(frozen=True, slots=True)
class Work:
    """A statement that can fail: what makes a test a test. `prepares` marks one that only gets a test ready."""

    line: int
    prepares: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """`if condition`, or the handler of a `try` (its condition is then a phrase, never code that evaluates)."""

    condition: str
    line: int
    body: tuple[Step, ...]
    orelse: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`for … in iterable`. `while` has an empty iterable."""

    iterable: str
    line: int
    body: tuple[Step, ...]


Step = Skip | Stop | Call | Work | Branch | Loop


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method. `line` is that of its `def`, `first_line` that of its first decorator."""

    name: str
    line: int
    column: int
    first_line: int
    end_line: int
    role: FunctionRole
    is_async: bool
    receiver: str
    decorators: tuple[Decorator, ...]
    steps: tuple[Step, ...]
    returns: str
    """The one expression that the whole body returns, or nothing."""
    gates: tuple[Decorator, ...]
    """Calls of `unittest.skip…` inside: what makes a function usable as a decorator that skips."""
    hollow: bool
    """The body holds nothing but a docstring, `pass`, `...` or a bare `return`."""
    defaults: tuple[tuple[str, str], ...] = ()
    """The parameters with a default: what the reasons of its gates may name."""
    makes_decorator: bool = False
    """It has to be called to give a decorator: used bare, it replaces the test by that decorator."""


@dataclass(frozen=True, slots=True)
class Value:
    """`name = expression` in a class or module body."""

    name: str
    line: int
    column: int
    end_line: int
    expression: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """`del name` in a class body."""

    name: str
    line: int


Member = Function | Value | Deleted


@dataclass(frozen=True, slots=True)
class Class:
    """A class statement; `members` keeps the last binding of each name, `lost` the tests that a later one hides."""

    name: str
    line: int
    column: int
    end_line: int
    bases: tuple[str, ...]
    decorators: tuple[Decorator, ...]
    members: tuple[Member, ...]
    lost: tuple[Function, ...]
    nested: tuple[Function, ...]
    """Test methods of classes nested inside, and test functions nested inside methods."""
    set_on_instance: tuple[str, ...]
    """Names that some method assigns on `self`: a class attribute of that name says nothing certain."""
    copies_tests: bool
    """`__init_subclass__` sets every inherited test anew on each subclass."""


@dataclass(frozen=True, slots=True)
class Import:
    """`name` stands for `module`, or for `attribute` of it. `level` counts the leading dots."""

    name: str
    module: str
    level: int
    attribute: str


@dataclass(frozen=True, slots=True)
class File:
    """Everything that later steps need from one file. `error` is set, and all else empty, where it does not parse."""

    classes: tuple[Class, ...] = ()
    functions: tuple[Function, ...] = ()
    values: tuple[Value, ...] = ()
    imports: tuple[Import, ...] = ()
    deleted: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset()
    """Attribute names that are read from a test case anywhere in the file."""
    ignored: tuple[tuple[int, str], ...] = ()
    """Lines with a comment that silences a lint, with its code."""
    error: str = ""
    error_line: int = 0
