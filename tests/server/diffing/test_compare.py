"""Bit for bit: what counts as equal without a look at the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from twinlens.diffing.compare import same_bytes


def test_nan_is_the_same_as_itself_and_minus_zero_is_not_zero():
    assert same_bytes(np.array([np.nan, 1.0], np.float32), np.array([np.nan, 1.0], np.float32))
    assert not same_bytes(np.array([0.0]), np.array([-0.0]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("place", [0, 70_000, 131_072])
def test_one_element_that_differs_is_seen_wherever_it_stands(dtype: type, place: int):
    ours = np.arange(131_073, dtype=np.int64).astype(dtype)
    theirs = ours.copy()
    assert same_bytes(ours, theirs)
    theirs[place] += 1
    assert not same_bytes(ours, theirs)


def test_other_dtypes_and_lengths_are_never_the_same():
    assert not same_bytes(np.zeros(2, np.float32), np.zeros(1, np.float64))
    assert not same_bytes(np.zeros(2), np.zeros(3))
    assert same_bytes(np.zeros(0), np.zeros(0))
