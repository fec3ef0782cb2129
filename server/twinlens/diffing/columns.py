"""Which row of one weight matrix stands where in another: how a projection was permuted, split or fused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twinlens.diffing.nodes import Node, Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Parameter

Columns = npt.NDArray[np.int64]


def matrix_of(node: Node) -> Parameter | None:
    """The weight of a projection: its first parameter of two dimensions."""
    return next((item for item in node.parameters if len(item.tensor.shape) == 2 and not item.is_buffer), None)


def bias_of(node: Node) -> Parameter | None:
    """The first parameter of one dimension."""
    return next((item for item in node.parameters if len(item.tensor.shape) == 1 and not item.is_buffer), None)


def output_rows(side: Side, node: Node) -> Array | None:
    """The weight with one row for each output, (out, in): `Conv1D` keeps it the other way round. None where its values
    were not kept."""
    weight = matrix_of(node)
    if weight is None or not side.values.has(weight.tensor):
        return None
    values = side.values.array(weight.tensor)
    rows, columns = values.shape
    is_turned = node.class_name == "Conv1D" or (
        node.shape_out
        and node.shape_in
        and (rows, columns) == (node.shape_in[-1], node.shape_out[-1])
        and rows != columns
    )
    return values.T if is_turned else values


def row_map(reference: Array, port: Array, dtype: str) -> Columns | None:
    """`columns` with `port[i] == reference[columns[i]]`, compared as numbers of `dtype`; None unless every row of the
    port is a row of the reference, each used once. Equal rows are taken in their order."""
    columns = partial_row_map(reference, port, dtype)
    return None if columns is None or (columns < 0).any() else columns


def partial_row_map(reference: Array, port: Array, dtype: str) -> Columns | None:
    """As `row_map`, with -1 for a row of the port that is none of the reference's; None where shapes differ."""
    if reference.shape != port.shape:
        return None
    ours, theirs = row_keys(reference, dtype), row_keys(port, dtype)
    places: dict[bytes, list[int]] = {}
    for place, key in enumerate(ours):
        places.setdefault(key, []).append(place)
    for found in places.values():
        found.reverse()
    columns = np.empty(len(theirs), np.int64)
    for place, key in enumerate(theirs):
        found = places.get(key)
        columns[place] = found.pop() if found else -1
    return columns


def completed(columns: Columns) -> Columns:
    """With each -1 replaced by a row that no other place takes, in their order."""
    left = np.setdiff1d(np.arange(len(columns)), columns)
    filled = columns.copy()
    filled[columns < 0] = left[: int((columns < 0).sum())]
    return filled


def row_keys(matrix: Array, dtype: str) -> list[bytes]:
    rounded = rounded_to(matrix, dtype)
    return [row.tobytes() for row in np.ascontiguousarray(rounded + 0.0)]


def rounded_to(values: Array, dtype: str) -> Array:
    """`values` rounded to the nearest number of `dtype` (ties to even), as float32 or float64."""
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        nearest = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(values), np.float32(np.nan), nearest.view(np.float32))
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return np.asarray(values, np.float32).astype(np.float16).astype(np.float32)
    return np.asarray(values, np.float32 if dtype == "float32" else np.float64)


def coarser(dtype: str, other: str) -> str:
    """Of two floating dtypes the one with fewer digits."""
    order = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    known = [item for item in (dtype, other) if item in order]
    return max(known, key=order.index) if known else "float32"


def is_plain(columns: Columns) -> bool:
    return bool((columns == np.arange(len(columns))).all())
