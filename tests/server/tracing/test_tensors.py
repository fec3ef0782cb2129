"""Statistics, norm profiles, fingerprints and the packed files, against torch on the whole tensor."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import load_file
from twinlens.tracing.fingerprint import fingerprint
from twinlens.tracing.packed import PackedTensors, write_safetensors
from twinlens.tracing.record import values_of_joined
from twinlens.tracing.statistics import profile, statistics


def test_statistics_of_a_known_tensor():
    statistics = profile(torch.tensor([[1.0, 0.0], [-3.0, 4.0]])).statistics
    assert statistics.mean == 0.5
    assert statistics.std == pytest.approx(math.sqrt((0.25 + 0.25 + 12.25 + 12.25) / 3))
    assert (statistics.min, statistics.max, statistics.absmax) == (-3, 4, 4)
    assert statistics.l2 == pytest.approx(math.sqrt(26))
    assert statistics[6:] == (1, 0, 0, 0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize("shape", [(7,), (3, 50000), (2, 5, 129), (40000, 2), (2, 3, 4, 5)])
def test_statistics_and_norms_are_those_of_the_values_in_float64(dtype, shape):
    torch.manual_seed(673)
    tensor = torch.randn(shape).to(dtype)
    exact = tensor.double()
    described = profile(tensor)
    assert described.statistics.mean == pytest.approx(exact.mean().item(), abs=1e-12)
    assert described.statistics.std == pytest.approx(exact.std().item(), rel=1e-9)
    assert (described.statistics.min, described.statistics.max) == (exact.min().item(), exact.max().item())
    assert described.statistics.zeros == int((exact == 0).sum())
    rows = exact.reshape(-1, shape[-1])
    torch.testing.assert_close(described.token_norms, rows.norm(dim=1).float())
    torch.testing.assert_close(described.channel_norms, rows.norm(dim=0).float())


def test_a_transposed_view_has_its_own_rows():
    tensor = torch.arange(6.0).reshape(2, 3).T
    torch.testing.assert_close(profile(tensor).token_norms, tensor.contiguous().norm(dim=1))


def test_nan_and_infinities_are_counted_and_left_out():
    statistics = profile(torch.tensor([1.0, math.nan, math.inf, -math.inf, math.nan, 3.0, 0.0])).statistics
    assert statistics[6:] == (1, 2, 1, 1)
    assert statistics.mean == pytest.approx(4 / 3)
    assert (statistics.min, statistics.max) == (0, 3)


def test_values_far_from_zero_keep_their_spread():
    tensor = torch.tensor([1e8, 1e8 + 1, 1e8 + 2], dtype=torch.float64)
    assert profile(tensor).statistics.std == pytest.approx(1.0)


def test_values_whose_squares_overflow_have_finite_statistics():
    statistics = profile(torch.tensor([1e200, -1e200], dtype=torch.float64)).statistics
    assert (statistics.mean, statistics.max, statistics[7:]) == (0, 1e200, (0, 0, 0))


@pytest.mark.parametrize(
    ("tensor", "mean", "largest"),
    [
        (torch.tensor([True, False]), 0.5, 1),
        (torch.tensor([1, 2, 6]), 3, 6),
        (torch.tensor(7, dtype=torch.uint8), 7, 7),
        (torch.tensor([3 + 4j, 0j]), 2.5, 5),
        (torch.quantize_per_tensor(torch.tensor([0.0, 1.0]), 0.5, 0, torch.qint8), 0.5, 1),
    ],
)
def test_every_dtype_has_statistics(tensor, mean, largest):
    statistics = profile(tensor).statistics
    assert (statistics.mean, statistics.max) == (mean, largest)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64])
@pytest.mark.parametrize("shape", [(), (7,), (3, 150_000), (2, 5, 129)])
def test_statistics_without_norms_are_those_of_a_profile(dtype, shape):
    tensor = (torch.randn(shape) * 4).relu().to(dtype)
    alone, beside_norms = statistics(tensor), profile(tensor).statistics
    assert alone == pytest.approx(beside_norms, rel=1e-12, nan_ok=True)
    assert alone.zeros == int((tensor.double() == 0).sum())


def test_statistics_without_norms_count_what_is_not_finite():
    found = statistics(torch.tensor([1.0, float("nan"), float("inf"), 3.0]))
    assert (found.mean, found.max, found.nans, found.positive_infinities) == (2, 3, 1, 1)


def test_pieces_of_any_size_give_one_fingerprint(monkeypatch):
    weight = torch.randn(700, 500)
    monkeypatch.setattr("twinlens.tracing.fingerprint.piece_elements", lambda: 32_000)
    in_small_pieces = fingerprint(weight)
    monkeypatch.setattr("twinlens.tracing.fingerprint.piece_elements", lambda: 300_000)
    assert fingerprint(weight) == in_small_pieces


def test_an_empty_tensor_has_none():
    assert profile(torch.empty(0, 4)).statistics is None
    assert statistics(torch.empty(0, 4)) is None


def test_a_fingerprint_names_a_transposition():
    weight = torch.randn(8, 8)
    own, other = fingerprint(weight), fingerprint(weight.T)
    assert own.values == other.values
    assert own.ordered != other.ordered
    assert own.transposed == other.ordered


def test_a_fingerprint_of_a_batch_of_matrices_names_their_transposition():
    weight = torch.randn(5, 3, 4)
    assert fingerprint(weight).transposed == fingerprint(weight.transpose(1, 2)).ordered


def test_the_order_free_fingerprint_survives_permutation_and_reshape():
    weight = torch.randn(300, 200)
    permuted = weight[torch.randperm(300)][:, torch.randperm(200)].reshape(100, 600)
    assert fingerprint(permuted).values == fingerprint(weight).values
    assert fingerprint(permuted).ordered != fingerprint(weight).ordered


def test_the_ordered_fingerprint_does_not_see_shape():
    weight = torch.randn(6, 4)
    assert (
        fingerprint(weight).ordered
        == fingerprint(weight.reshape(2, 3, 4)).ordered
        == fingerprint(weight.flatten()).ordered
    )


def test_fingerprints_of_parts_add_up_to_that_of_the_fused_tensor():
    parts = [torch.randn(4, 8) for _ in range(3)]
    fused = torch.stack(parts, dim=1).reshape(12, 8)
    assert fingerprint(fused).values == values_of_joined(fingerprint(part).values for part in parts)


def test_a_long_row_is_read_in_pieces_like_any_other():
    row = torch.randn(100_003)
    square = row[:90_000].reshape(300, 300)
    assert fingerprint(row[:90_000]).ordered == fingerprint(square).ordered
    read = profile(row)
    assert read.statistics.mean == pytest.approx(row.double().mean().item(), rel=1e-12)
    assert read.statistics.l2 == pytest.approx(row.double().norm().item(), rel=1e-12)
    assert read.token_norms.item() == pytest.approx(read.statistics.l2, rel=1e-6)


def test_an_exact_cast_leaves_the_fingerprint_alone():
    weight = torch.randn(10, 10).bfloat16()
    assert fingerprint(weight) == fingerprint(weight.float()) == fingerprint(weight.double())


def test_one_changed_value_changes_every_fingerprint():
    weight = torch.randn(100, 100)
    changed = weight.clone()
    changed[3, 4] += 1e-6
    assert all(a != b for a, b in zip(fingerprint(weight), fingerprint(changed), strict=True))


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (1.0, 1.0 + 2**-52),
        (1e300, 2e300),
        (math.inf, 1e300),
        (math.inf, -math.inf),
        (2**24, 2**24 + 1),
        (math.nan, 0.0),
        (3 + 4j, 4 + 3j),
    ],
)
def test_values_that_float32_does_not_tell_apart_have_other_fingerprints(value, other):
    dtype = torch.complex128 if isinstance(value, complex) else torch.int64 if isinstance(value, int) else torch.float64
    prints = [fingerprint(torch.tensor([value_, 1], dtype=dtype)).values for value_ in (value, other)]
    assert prints[0] != prints[1]


def test_zeros_of_both_signs_and_every_nan_count_alike():
    one, other = torch.tensor([0.0, math.nan, math.inf]), torch.tensor([-0.0, -math.nan, math.inf])
    assert fingerprint(one) == fingerprint(other) == fingerprint(one.double())


def test_a_packed_file_is_a_safetensors_file_once_closed(tmp_path):
    packed = PackedTensors(tmp_path, header_room=4096, metadata={"class": "Net"})
    tensors = {
        "float": torch.randn(3, 4),
        "half": torch.randn(5).half(),
        "bool": torch.tensor([True, False, True]),
        "empty": torch.empty(0, 2),
        "scalar": torch.tensor(2.5),
        "strided": torch.arange(12).reshape(3, 4).T,
        "float8": torch.randn(4).to(torch.float8_e5m2),
    }
    data = {name: packed.append(name, tensor) for name, tensor in tensors.items()}
    packed.close()
    loaded = load_file(tmp_path / "tensors-00000.safetensors")
    assert all(torch.equal(loaded[name].double(), tensor.double()) for name, tensor in tensors.items())
    raw = (tmp_path / "tensors-00000.safetensors").read_bytes()
    expected = tensors["float"].numpy().tobytes()
    assert raw[data["float"].start : data["float"].stop] == expected


def test_a_packed_file_whose_header_is_full_is_followed_by_another(tmp_path):
    packed = PackedTensors(tmp_path, header_room=1024, metadata={})
    files = {packed.append(f"tensor {index}", torch.full((2,), float(index))).file for index in range(12)}
    packed.close()
    assert sorted(files) == ["tensors-00000.safetensors", "tensors-00001.safetensors", "tensors-00002.safetensors"]
    loaded = {}
    for file in files:
        loaded |= load_file(tmp_path / file)
    assert [loaded[f"tensor {index}"][0].item() for index in range(12)] == list(range(12))


def test_values_are_on_disk_before_the_file_is_closed(tmp_path):
    packed = PackedTensors(tmp_path, header_room=1024, metadata={})
    data = packed.append("x", torch.tensor([1.0, 2.0]))
    raw = (tmp_path / data.file).read_bytes()[data.start : data.stop]
    assert raw == torch.tensor([1.0, 2.0]).numpy().tobytes()


def test_a_dtype_without_a_name_in_the_format_is_stored_as_bytes(tmp_path):
    tensor = torch.tensor([1 + 2j], dtype=torch.complex128)
    write_safetensors(tmp_path / "x.safetensors", tensor)
    loaded = load_file(tmp_path / "x.safetensors")["data"]
    assert (loaded.dtype, loaded.shape) == (torch.uint8, (1, 16))
    assert loaded.view(torch.complex128)[0].item() == 1 + 2j
