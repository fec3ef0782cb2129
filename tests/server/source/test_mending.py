"""What parses of a text that a person has not finished."""

from __future__ import annotations

import pytest
from twinlens.source.mending import what_parses

BEFORE = """\
import torch

@final
class Whole(torch.nn.Module):
    def forward(self, x):
        return x
"""
BROKEN = """\
class Broken(torch.nn.Module:
    def forward(self, x):
        return x

"""
AFTER = """\
def after():
    if True:
        pass
"""


def test_statements_that_parse_stay_on_their_lines():
    assert what_parses(BEFORE + BROKEN + AFTER) == BEFORE + "\n" * 4 + AFTER


def test_branches_and_closing_brackets_belong_to_the_statement_above():
    whole = "try:\n    import a\nexcept ImportError:\n    a = None\nelse:\n    b = (\n1,\n)\n"
    assert what_parses(whole.replace("1,", "    1,") + "class C(:\n") == whole.replace("1,", "    1,") + "\n"


UNUSABLE = ["class Broken(:\n", "\0", ""]


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_text_of_which_nothing_parses_is_refused(text: str):
    with pytest.raises(SyntaxError):
        what_parses(text)


def test_what_follows_a_string_that_is_not_closed_is_kept():
    assert what_parses("x = '''\nclass A: pass\n") == "\nclass A: pass\n"
