"""Where a fault is placed that lies between modules: in who hands on what."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from traces import write_trace
from twinlens.diffing.diff import Diff, causes_or_unknown, diff_folders


class Parallel(nn.Module):
    """Two norms of one input, each before a projection of its own."""

    def __init__(self, *, uses_second_norm: bool = True):
        super().__init__()
        self.uses_second_norm = uses_second_norm
        self.first_norm, self.second_norm = nn.LayerNorm(8), nn.LayerNorm(8)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.second_norm if self.uses_second_norm else self.first_norm
        return x + self.first(self.first_norm(x)) + self.second(norm(x))


class Pooler(nn.Module):
    def __init__(self, *, is_bounded: bool = True):
        super().__init__()
        self.is_bounded = is_bounded
        self.dense, self.activation = nn.Linear(8, 8), nn.Tanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = self.dense(x)
        return self.activation(pooled) if self.is_bounded else pooled


class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.types = nn.Embedding(2, 8)

    def forward(self, x: torch.Tensor, types: torch.Tensor | None = None) -> torch.Tensor:
        types = torch.zeros(x.shape[:2], dtype=torch.long) if types is None else types
        return x + self.types(types)


class Whole(nn.Module):
    def __init__(self, part: nn.Module):
        super().__init__()
        self.part = part

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.part(*args)


def compared(reference: nn.Module, port: nn.Module, folder: Path, *port_args: torch.Tensor) -> Diff:
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.normal_()
    port.load_state_dict(reference.state_dict())
    x = torch.randn(2, 5, 8)
    ours = write_trace(folder / "reference", Whole(reference).eval(), x)
    theirs = write_trace(folder / "port", Whole(port).eval(), x, *port_args)
    return diff_folders(ours, theirs)


def origins(diff: Diff) -> list[str]:
    return [diff.port.trace.calls[found.origin.port_frame].path for found in diff.diagnoses]


def test_a_module_that_is_called_instead_of_another_is_a_fault_of_who_calls_it(tmp_path: Path):
    diff = compared(Parallel(), Parallel(uses_second_norm=False), tmp_path)
    assert origins(diff) == ["Whole.part"]


def test_a_module_that_is_not_called_is_a_fault_of_who_should_call_it(tmp_path: Path):
    diff = compared(Pooler(), Pooler(is_bounded=False), tmp_path)
    assert (diff.outcome, origins(diff)) == ("differ", ["Whole.part"])


def test_an_argument_that_one_model_alone_was_given_is_named(tmp_path: Path):
    diff = compared(Typed(), Typed(), tmp_path, torch.ones(2, 5, dtype=torch.long))
    ((cause,),) = [causes_or_unknown(found) for found in diff.diagnoses]
    assert cause.code == "preprocessing"
    assert cause.message.startswith("only the port was given ")


def test_without_values_no_cause_is_said_to_be_tried(tmp_path: Path):
    torch.manual_seed(0)
    reference, port = Pooler(), Pooler(is_bounded=False)
    port.load_state_dict(reference.state_dict())
    x = torch.randn(2, 5, 8)
    ours = write_trace(tmp_path / "reference", Whole(reference), x, stats_only=True)
    theirs = write_trace(tmp_path / "port", Whole(port), x, stats_only=True)
    (found,) = diff_folders(ours, theirs).diagnoses
    (cause,) = causes_or_unknown(found)
    assert "these were not recorded" in cause.message


class Probed(nn.Module):
    """Scales what it is given, and shows it to a module before it goes on with it."""

    def __init__(self, factor: float, *, is_shown: bool):
        super().__init__()
        self.factor, self.is_shown = factor, is_shown
        self.probe, self.last = nn.Identity(), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = self.factor * x
        if self.is_shown:
            self.probe(scaled)
        return self.last(scaled)


def test_what_a_module_without_a_partner_is_given_first_is_a_fault_of_who_made_it(tmp_path: Path):
    diff = compared(Probed(2.0, is_shown=True), Probed(3.0, is_shown=False), tmp_path)
    assert origins(diff) == ["Whole.part"]


def test_rows_of_an_embedding_that_no_token_asks_for_are_told_where_all_agrees(tmp_path: Path):
    torch.manual_seed(0)
    reference, port = nn.Embedding(10, 4), nn.Embedding(10, 4)
    port.load_state_dict(reference.state_dict())
    with torch.no_grad():
        port.weight[7:] = 0
    tokens = torch.tensor([[1, 2, 6]])
    ours = write_trace(tmp_path / "reference", Whole(reference).eval(), tokens)
    theirs = write_trace(tmp_path / "port", Whole(port).eval(), tokens)
    diff = diff_folders(ours, theirs)
    (note,) = diff.notes
    assert diff.outcome == "agree"
    assert note.startswith("Whole.part.weight differs from the reference's though what is made with it agrees")


class Split(nn.Module):
    """Queries and keys of projections of their own, each normed."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(8, 8), nn.Linear(8, 8)
        self.q_norm, self.k_norm = nn.LayerNorm(8), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q_norm(self.q_proj(x))
        return q * self.k_norm(self.k_proj(x))


class Fused(nn.Module):
    """As `Split`, with one projection."""

    def __init__(self, split: Split):
        super().__init__()
        self.qk, self.q_norm, self.k_norm = nn.Linear(8, 16), split.q_norm, split.k_norm
        projections = split.q_proj, split.k_proj
        with torch.no_grad():
            self.qk.weight.copy_(torch.cat([projection.weight for projection in projections]))
            self.qk.bias.copy_(torch.cat([projection.bias for projection in projections]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k = self.qk(x).chunk(2, -1)
        return self.q_norm(q) * self.k_norm(k)


def test_a_bias_that_part_of_a_fused_projection_lost_is_its_fault_alone(tmp_path: Path):
    torch.manual_seed(0)
    reference = Split()
    port = Fused(reference)
    with torch.no_grad():
        port.qk.bias[8:] = 0
    x = torch.randn(2, 5, 8)
    ours = write_trace(tmp_path / "reference", Whole(reference).eval(), x)
    theirs = write_trace(tmp_path / "port", Whole(port).eval(), x)
    diff = diff_folders(ours, theirs)
    (found,) = diff.diagnoses
    assert origins(diff) == ["Whole.part.qk"]
    assert found.causes[0].code == "missing-bias"
    assert "the part of qk.bias that stands for k_proj (rows 8 to 15)" in found.causes[0].change


class Masked(nn.Module):
    """Gives its block one mask of -inf, or two of the smallest number, of which the second is the one to use."""

    def __init__(self, *, gives_both: bool):
        super().__init__()
        self.gives_both, self.block = gives_both, MaskedBlock()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        full = torch.ones(5, 5, dtype=torch.bool).triu(1)
        window = full | torch.ones(5, 5, dtype=torch.bool).tril(-2)
        if not self.gives_both:
            return self.block(x, torch.zeros(5, 5).masked_fill(window, -torch.inf))
        low = torch.finfo(x.dtype).min
        return self.block(x, tuple(torch.zeros(1, 1, 5, 5).masked_fill(some, low) for some in (full, window)))


class MaskedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        mask = mask[1][0] if isinstance(mask, tuple) else mask
        return (self.q(x) @ self.k(x).mT + mask).softmax(-1) @ x


def test_of_two_masks_the_one_that_blocks_the_same_places_stands_for_the_references(tmp_path: Path):
    diff = compared(Masked(gives_both=False), Masked(gives_both=True), tmp_path)
    assert (diff.outcome, origins(diff)) == ("agree", [])
