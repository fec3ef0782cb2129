from __future__ import annotations

import pytest
from twinlens.source.definitions import read_definitions, read_source, strip_comments

SOURCE = '''\
"""Module docstring."""
import torch

if torch.cuda.is_available():
    class Fast(torch.nn.Module):
        pass
else:
    class Slow(torch.nn.Module): pass

@decorated(1)
@package.other
class Café(nn.Module, Generic[T]):
    """What it is."""

    import math

    def __init__(self):  # a comment
        """Docstring."""
        self.sign = "# no comment"

    async def forward(self, x):
        from math import sqrt
        return sqrt(x)

def lone(): "only a docstring"

async def waits(): ...
'''


def by_name(text: str):
    return {definition.name: definition for definition in read_definitions(text)}


def test_module_level_classes_and_functions_are_found_inside_conditions_too():
    assert [d.name for d in read_definitions(SOURCE)] == ["Fast", "Slow", "Café", "lone", "waits"]


def test_a_definition_knows_its_place_bases_decorators_and_methods():
    cafe = by_name(SOURCE)["Café"]
    assert (cafe.first_line, cafe.line, cafe.end_line, cafe.name_column) == (10, 12, 23, 6)
    assert cafe.bases == ("nn.Module", "Generic")
    assert cafe.decorators == ("decorated", "package.other")
    assert cafe.methods == ("__init__", "forward")


def test_code_is_the_source_without_docstrings_comments_imports_and_blank_lines():
    assert by_name(SOURCE)["Café"].code == (
        "class Café(nn.Module, Generic[T]):\n"
        "    def __init__(self):\n"
        '        self.sign = "# no comment"\n'
        "    async def forward(self, x):\n"
        "        return sqrt(x)"
    )


def test_a_body_of_nothing_but_a_docstring_reads_as_pass():
    with_docstring = by_name('class A(B):\n    """Doc."""\n')["A"].code
    assert with_docstring == by_name("class A(B):\n    pass\n")["A"].code == "class A(B):\n    pass"


def test_an_indented_definition_is_brought_to_the_margin():
    assert by_name(SOURCE)["Fast"].source == "class Fast(torch.nn.Module):\n    pass"


def test_of_two_definitions_with_one_name_the_last_counts():
    assert [d.line for d in read_definitions("def f(): pass\ndef f(): return 1\n")] == [2]


def test_name_columns_count_bytes_of_utf8():
    text = "if 'é🙂': pass\nx = 'é🙂'; \nclass  Ünder: pass\n"
    assert by_name(text)["Ünder"].name_column == 7


@pytest.mark.parametrize("text", ["class A(:\n", "def f(\n", "\x00", "(" * 5000 + ")" * 5000, "x = '''"])
def test_text_that_does_not_parse_is_a_syntax_error_and_nothing_else(text):
    with pytest.raises(SyntaxError):
        read_definitions(text)


def test_an_empty_text_has_no_definitions():
    assert read_definitions("") == ()


def test_carriage_returns_do_not_move_lines():
    assert [d.line for d in read_definitions("import a\r\n\r\nclass A:\r\n    pass\r\n")] == [3]


def test_a_form_feed_does_not_move_lines():
    assert [d.line for d in read_definitions("x = 1\x0c\nclass A:\n    pass\n")] == [2]


def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    assert "'é'" in read_source(path)


def test_a_latin_1_file_that_declares_nothing_is_refused_with_its_path(tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes("class A:\n    name = 'é'\n".encode("latin-1"))
    with pytest.raises(SyntaxError, match=r"latin\.py"):
        read_source(path)


def test_a_hash_in_a_string_is_no_comment():
    assert strip_comments('a = \'#1\'  # two\nb = """\n# three\n"""') == 'a = \'#1\'  \nb = """\n# three\n"""'
