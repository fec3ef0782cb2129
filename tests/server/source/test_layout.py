from __future__ import annotations

import pytest
from twinlens.source.layout import logical_lines, sameness


def same(one: str, other: str) -> bool:
    return sameness(logical_lines(one)) == sameness(logical_lines(other))


def test_a_logical_line_has_no_layout():
    (line,) = logical_lines("x = f(\n    a,\n    b,\n)")
    assert line.text == "x = f ( a , b )"
    assert line.indent == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(\n    a,\n    b,\n):\n    return a", "def f(a, b):\n    return a"),
        ("class A(B):\n    pass", "class A(B): ..."),
        ("class A(B):\n    ...", "class A(B):\n    pass"),
        ("if a:\n  b()", "if a:\n    b()"),
        ("a = 1\n\n\nb = 2", "a = 1\nb = 2"),
    ],
)
def test_layout_makes_no_difference(one, other):
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
        ("x = a[..., None]", "x = a[None]"),
        ("x = 'a b'", "x = 'a  b'"),
        ("x = (a, b)", "x = [a, b]"),
        ("def f(a): return a", "def f(a): pass"),
    ],
)
def test_what_python_tells_apart_differs(one, other):
    assert not same(one, other)


def test_a_bracket_that_never_closes_keeps_every_token():
    assert [line.text for line in logical_lines("f(a\nb")] == ["f ( a b"]
