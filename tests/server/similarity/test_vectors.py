from __future__ import annotations

import numpy as np
import pytest
from twinlens.similarity.vectors import VectorIndex


def families(count: int, members: int, width: int = 32) -> np.ndarray:
    """Unit rows in families around random centres, as a library of copies has them."""
    noise = np.random.default_rng(0)
    centres = np.repeat(noise.standard_normal((count, width)), members, axis=0)
    rows = centres + 0.3 * noise.standard_normal(centres.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("exact_up_to", [10_000, 10])
@pytest.mark.parametrize("left_out", [3, 1500])
def test_the_nearest_row_is_itself_and_rows_that_are_not_allowed_are_left_out(exact_up_to, left_out):
    rows = families(400, 5)
    index = VectorIndex(rows, exact_up_to)
    assert index.exact == (exact_up_to == 10_000)
    allowed = bytearray(b"\x01" * len(rows))
    allowed[-left_out:] = bytes(left_out)
    found = index.nearest(rows[7], allowed, 5)
    assert next(iter(found)) == 7 and next(iter(found.values())) == pytest.approx(1, abs=1e-5)
    assert len(found) == 5 and max(found) < len(rows) - left_out
    assert next(iter(index.nearest(rows[-1], allowed, 3))) < len(rows) - left_out
    assert index.cosines(rows[7], list(found)) == pytest.approx(list(found.values()), abs=1e-5)


def test_beyond_the_bound_nearly_all_of_the_five_nearest_are_found():
    rows = families(1000, 5)
    allowed = bytearray(b"\x01" * len(rows))
    exact, approximate = VectorIndex(rows), VectorIndex(rows, exact_up_to=100)
    shared = [
        len(exact.nearest(row, allowed, 5).keys() & approximate.nearest(row, allowed, 5).keys()) for row in rows[::50]
    ]
    assert sum(shared) >= 0.9 * 5 * len(shared)
