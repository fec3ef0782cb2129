"""NaN and Inf are named where they come from, and no formula that meets them writes to the log."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import pytest
import torch
from traces import Net, inputs, net, write_trace
from twinlens.diffing.diff import Diff, diff_folders


def spoil(model: Net, value: float) -> None:
    with torch.no_grad():
        model.layers[1].down.bias[0] = value


def compared(folder: Path, reference: Net, port: Net, ours: torch.Tensor, theirs: torch.Tensor) -> Diff:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return diff_folders(
            write_trace(folder / "reference", reference, ours), write_trace(folder / "port", port, theirs)
        )


def first(diff: Diff) -> tuple[str, str, str]:
    diagnosis = diff.diagnoses[0]
    cause = diagnosis.causes[0]
    return diff.port.trace.calls[diagnosis.origin.port_frame].path, cause.code, cause.message


@pytest.mark.parametrize(("value", "said"), [(math.nan, "1 NaN"), (math.inf, "1 Inf")])
def test_a_parameter_that_is_no_number_is_named(tmp_path: Path, value: float, said: str):
    port = net()
    spoil(port, value)
    path, code, message = first(compared(tmp_path, net(), port, inputs(), inputs()))
    assert (path, code) == ("Net.layers.1.down", "not-finite")
    assert message == f"down.bias holds {said} in the port: not what the reference holds"


def test_an_input_that_is_no_number_is_named(tmp_path: Path):
    spoiled = inputs()
    spoiled[0, 0, 0], spoiled[0, 1, 1] = math.nan, math.inf
    path, code, message = first(compared(tmp_path, net(), net(), inputs(), spoiled))
    assert (path, code) == ("Net", "preprocessing")
    assert message.startswith("x holds 1 NaN and 1 Inf in the port")
