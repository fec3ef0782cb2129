import math

import numpy as np
import pytest
from twinlens.diffing.causes.cap_fit import scale_and_cap, scales

PRODUCTS = np.random.default_rng(673).normal(0, 8, 180)


@pytest.mark.parametrize(("scale", "cap"), [(0.25, 20.0), (0.25, 4.5), (2.0, 50.0), (0.5, 300.0)])
def test_a_factor_and_a_soft_cap_that_nobody_names_are_solved_for(scale, cap):
    solved = scale_and_cap(PRODUCTS, cap * np.tanh(scale * PRODUCTS / cap))
    assert solved[:2] == (pytest.approx(scale, rel=1e-6), pytest.approx(cap, rel=1e-4))
    assert solved[2] < 1e-9


def test_scores_that_no_cap_explains_leave_a_large_residual():
    noise = np.random.default_rng(1).normal(0, 1, 180)
    assert scale_and_cap(PRODUCTS, 20 * np.tanh(PRODUCTS / 80) + noise)[2] > 1e-2
    assert scale_and_cap(PRODUCTS, -PRODUCTS)[2] == math.inf


def test_each_row_of_products_gets_its_own_factor():
    factors, left = scales(np.stack([PRODUCTS, 2 * PRODUCTS, -PRODUCTS]), 3 * PRODUCTS, math.inf)
    assert factors.tolist() == pytest.approx([3.0, 1.5, -3.0])
    assert left.tolist() == [pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-12), math.inf]


def test_scores_at_or_above_a_cap_are_not_made_by_it():
    assert scales(PRODUCTS[None], PRODUCTS, float(np.abs(PRODUCTS).max()))[1].tolist() == [math.inf]
