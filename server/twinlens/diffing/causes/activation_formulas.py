"""Activations by the names that people call them; formulas as in torch and in transformers' `ACT2FN`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from twinlens.diffing.causes.formulas import erf, expit
from twinlens.diffing.values import Array


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "GELU (erf)": _gelu,
    "GELU (tanh)": _gelu_tanh,
    "quick GELU": lambda x: x * expit(1.702 * x),
    "SiLU": lambda x: x * expit(x),
    "ReLU": lambda x: np.maximum(x, 0),
    "squared ReLU": lambda x: np.maximum(x, 0) ** 2,
    "the square": np.square,
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "leaky ReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "Mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "sigmoid": expit,
    "tanh": np.tanh,
    "hard swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "GELU (erf) clipped at 10": lambda x: np.clip(_gelu(x), -10, 10),
    "nothing": lambda x: x,
}
