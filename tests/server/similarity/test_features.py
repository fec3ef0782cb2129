from __future__ import annotations

import numpy as np
import pytest
from twinlens.similarity.features import features_of, modern_types, without_annotations
from twinlens.source.layout import logical_lines


def tokens(code):
    return logical_lines(code)[0].tokens


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x: Optional[int] = None", "x: int | None = None"),
        (
            "x: Optional[Tuple[int, Union[List[str], Dict[str, int]]]]",
            "x: tuple[int, list[str] | dict[str, int]] | None",
        ),
        ("a = List", "a = List"),
        ("y = d[Optional[int], 3]", "y = d[int | None, 3]"),
    ],
)
def test_types_in_the_spelling_of_typing_become_the_modern_ones(old, new):
    assert modern_types(tokens(old)) == tokens(new)


@pytest.mark.parametrize(
    ("annotated", "bare"),
    [
        (
            "def f(self, a: int, *args: A, b: tuple[int, int] = (1, 2), **kw: K):",
            "def f(self, a, *args, b=(1, 2), **kw):",
        ),
        ("def f(a=lambda x: x, b: int = {1: 2}) -> dict[str, int]:", "def f(a=lambda x: x, b={1: 2}):"),
        ("async def f(a: Callable[[int], int] = None) -> tuple[f(1), ...]:", "async def f(a=None):"),
        ("def f(a: int): return {a: 1}", "def f(a): return {a: 1}"),
        ("x: int = 3", "x: int = 3"),
    ],
)
def test_a_function_is_read_without_its_annotations(annotated, bare):
    assert without_annotations(tokens(annotated)) == tokens(bare)


def test_names_assigned_in_a_class_body_are_attributes_as_those_on_self_are():
    in_body = features_of("class ModelOutput(Output):\n    loss: int | None = None\n    logits = 3\n")
    on_self = features_of(
        "class ModelThing:\n    def __init__(self):\n        self.loss = 1\n        self.logits = 3\n        kept = 4\n"
    )
    assert len(in_body.attributes) == 2
    assert np.array_equal(in_body.attributes, on_self.attributes)
