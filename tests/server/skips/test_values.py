from __future__ import annotations

import pytest
from twinlens.skips.values import MISSING, UNKNOWN, evaluate, truth
from twinlens.skips.wording import deciding_attribute, render

NAMES = {"LIMIT": 3, "WHY": "no room", "CLASSES": (UNKNOWN, UNKNOWN)}
ATTRIBUTES = {"has_attentions": False, "is_composite": True, "classes": (), "unsure": UNKNOWN}


class Scope:
    receiver = "self"

    def name(self, name):
        return NAMES.get(name, UNKNOWN)

    def attribute(self, name):
        return ATTRIBUTES.get(name, MISSING)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (
            "[(f'{side}_{n}', n) for n in range(2) for side in ('l', 'r') if n or side == 'l']",
            [("l_0", 0), ("l_1", 1), ("r_1", 1)],
        ),
        ("list(product(['a', 'b'], [1]))", [("a", 1), ("b", 1)]),
        ("(A, B) if is_torch_available() else ()", (UNKNOWN, UNKNOWN)),
        ("len(CLASSES)", 2),
        ("tuple(c for c in self.classes if c.can_generate())", ()),
        ("[*'ab'] + ['c']", ["a", "b", "c"]),
        ("unknown()", UNKNOWN),
        ("range(10 ** 9)", UNKNOWN),
        ("[x for x in range(9999) for y in range(9999)]", UNKNOWN),
    ],
)
def test_small_expressions_are_evaluated_as_far_as_source_tells(expression, value):
    assert evaluate(expression, Scope()) == value


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("not self.has_attentions", True),
        ("self.has_attentions and whatever", False),
        ("whatever or self.is_composite", True),
        ("whatever and self.is_composite", None),
        ("not self.unsure", None),
        ("getattr(self, 'gone', None) is None", True),
        ("hasattr(self, 'gone')", False),
        ("self.gone", None),
        ("len(self.classes) == 0", True),
        ("type(self).is_composite", True),
        ("LIMIT > 2 and LIMIT in (1, 2, 3)", True),
        ("CLASSES == (1, 2)", None),
        ("an exception is raised", None),
    ],
)
def test_conditions_hold_do_not_hold_or_are_open(condition, holds):
    assert truth(condition, Scope()) is holds


@pytest.mark.parametrize(
    ("condition", "attribute"),
    [
        ("not self.has_attentions", "has_attentions"),
        ("not (whatever and self.has_attentions)", "has_attentions"),
        ("whatever or self.has_attentions or self.is_composite", "is_composite"),
        ("getattr(self, 'gone', None) is None", "gone"),
        ("LIMIT > 2", ""),
    ],
)
def test_the_attribute_that_settles_a_condition_is_found(condition, attribute):
    assert deciding_attribute(condition, Scope()) == attribute


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("\"isn't\" ' it'", "isn't it"),
        ("WHY", "no room"),
        ("f'{WHY} for {model.__name__}'", "no room for {model.__name__}"),
        ("'one ' + WHY", "one no room"),
        ("'''many\n   lines'''", "many lines"),
        ("reason_of(self)", "{self}"),
    ],
)
def test_reasons_are_put_into_words(reason, text):
    assert render(reason, Scope()) == text
