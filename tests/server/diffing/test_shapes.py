"""Two arrays that hold the same thing in another order of dimensions."""

from __future__ import annotations

import numpy as np
from twinlens.diffing.shapes import conformed


def test_heads_before_and_behind_tokens_are_brought_into_one_order_though_the_last_dimension_is_one():
    reference = np.random.default_rng(0).normal(size=(2, 14, 6, 12))
    both = conformed(reference, np.ascontiguousarray(reference.transpose(0, 2, 1, 3)))
    assert both is not None
    assert np.array_equal(*both)


def test_dimensions_that_were_joined_are_taken_apart_as_they_lie():
    reference = np.random.default_rng(0).normal(size=(2, 14, 72))
    both = conformed(reference, reference.reshape(28, 72))
    assert both is not None
    assert np.array_equal(*both)
