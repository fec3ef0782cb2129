"""How far two right implementations may lie apart: the noise floor of a dtype.

The figures are relative L2 errors. `floor` is what one operation may do to equal inputs (another order of summation,
one more rounding to the dtype); `ceiling` is more than noise adds up to over a whole model. Both were measured on pairs
without a fault (sdpa against eager, fused against split projections, float32 against bfloat16) and set several times
above the largest value seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Noise:
    unit: float
    """Half the distance from 1 to the next number: the largest relative error of one rounding."""
    floor: float
    ceiling: float
    growth: float
    """How many times its inputs' error one step may make of it and still only pass noise on."""


_NOISE = {
    "float64": Noise(2.0**-53, 1e-11, 1e-6, 10.0),
    "float32": Noise(2.0**-24, 1e-5, 2e-3, 10.0),
    "float16": Noise(2.0**-11, 4e-3, 6e-2, 5.0),
    "bfloat16": Noise(2.0**-8, 2e-2, 2e-1, 4.0),
    "float8_e4m3fn": Noise(2.0**-4, 1e-1, 5e-1, 4.0),
    "float8_e5m2": Noise(2.0**-3, 2e-1, 6e-1, 4.0),
}
_ORDER = tuple(_NOISE)
PRINTED = Noise(1e-4, 1e-3, 2e-2, 5.0)
"""Of numbers that are known only as they were printed, with four decimals."""


@lru_cache(maxsize=256)
def noise_of_two(dtype: str, other: str) -> Noise:
    """Of the coarser of two dtypes."""
    return noise_of((dtype, other))


def noise_of(dtypes: Iterable[str]) -> Noise:
    """Of the coarsest of `dtypes` (as torch names them); float32's where none is known."""
    known = [dtype for dtype in dtypes if dtype in _NOISE]
    return _NOISE[max(known, key=_ORDER.index)] if known else _NOISE["float32"]
