"""What a trace costs, as ratios to the bare forward: transformers' debugger and ours, in one run on the CPU.

Llama of 8 layers, hidden size 512, 128 tokens. A round runs every way once, each in a new folder, and the next round
begins with another one; the figures are medians over the rounds. A time covers entering the context, the forward and
leaving; how long the context alone takes, with a forward that calls nothing, stands beside.

    python benchmarks/tracing.py
    python benchmarks/tracing.py --layers 2 --hidden 256 --tokens 32 --rounds 5
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

import torch
import transformers
import twinlens
from torch import nn

Tracing = Callable[[nn.Module, str], AbstractContextManager[object]]

VOCABULARY = 1000
BARE = "bare forward"
WAYS: dict[str, Tracing] = {
    BARE: lambda _model, _folder: nullcontext(),
    "transformers, repr": lambda model, folder: transformers.model_addition_debugger_context(model, folder),
    "twinlens, repr": lambda model, folder: twinlens.model_addition_debugger_context(model, folder),
    "transformers, safetensors": lambda model, folder: transformers.model_addition_debugger_context(
        model, folder, use_repr=False
    ),
    "twinlens, safetensors": lambda model, folder: twinlens.model_addition_debugger_context(
        model, folder, use_repr=False
    ),
    "twinlens, packed full tensors": lambda model, folder: twinlens.model_addition_debugger_context(
        model, folder, packed=True
    ),
    "twinlens, statistics only": lambda model, folder: twinlens.model_addition_debugger_context(
        model, folder, stats_only=True
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one way, medians over the rounds."""

    seconds: float
    """The context and one forward in it."""
    context_seconds: float
    """Entering and leaving without a forward."""
    megabytes: float
    files: int


def llama(layers: int, hidden: int) -> nn.Module:
    torch.manual_seed(673)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=hidden * 4,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=8,
    )
    return transformers.LlamaForCausalLM(config).eval()


def seconds_of(way: Tracing, model: nn.Module, ids: torch.Tensor | None, folder: Path) -> float:
    """Of the context with one forward of `ids` in it, or with none."""
    folder.mkdir()
    began = time.perf_counter()
    with torch.no_grad(), way(model, str(folder)):
        if ids is not None:
            model(input_ids=ids, use_cache=False)
    taken = time.perf_counter() - began
    torch.set_printoptions(profile="default")  # upstream's stay changed
    return taken


def measure(model: nn.Module, ids: torch.Tensor, rounds: int, names: list[str]) -> dict[str, Measured]:
    taken: dict[str, list[float]] = {name: [] for name in names}
    idle: dict[str, list[float]] = {name: [] for name in names}
    written: dict[str, list[int]] = {}
    for round_number in range(-1, rounds):
        first = round_number % len(names)
        for name in names[first:] + names[:first]:
            with tempfile.TemporaryDirectory() as folder:
                full = seconds_of(WAYS[name], model, ids, Path(folder, "full"))
                written[name] = [path.stat().st_size for path in Path(folder, "full").iterdir()]
                shutil.rmtree(Path(folder, "full"))
                empty = seconds_of(WAYS[name], model, None, Path(folder, "empty"))
            if round_number >= 0:  # one round to warm up
                taken[name].append(full)
                idle[name].append(empty)
    return {
        name: Measured(
            statistics.median(taken[name]), statistics.median(idle[name]), sum(written[name]) / 1e6, len(written[name])
        )
        for name in names
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1, help="that torch may use")
    parser.add_argument("--only", default="", help="the bare forward and ways with this in their name")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(arguments.threads)
    model = llama(arguments.layers, arguments.hidden)
    ids = torch.arange(arguments.tokens).remainder(VOCABULARY).reshape(1, -1)
    names = [BARE, *(name for name in WAYS if name != BARE and arguments.only in name)]
    measured = measure(model, ids, arguments.rounds, names)
    bare = measured[BARE].seconds
    print(f"Llama, {arguments.layers} layers, hidden {arguments.hidden}, {arguments.tokens} tokens", end="; ")
    print(f"torch {torch.__version__}, {arguments.threads} thread(s); medians of {arguments.rounds} rounds", end="; ")
    print(f"bare forward {bare * 1e3:.1f} ms")
    print(f"{'':32}{'times bare':>11}{'context alone':>15}{'MB':>8}{'files':>7}")
    for name, figures in measured.items():
        print(
            f"{name:32}{figures.seconds / bare:11.2f}{figures.context_seconds / bare:15.2f}"
            f"{figures.megabytes:8.1f}{figures.files:7}"
        )


if __name__ == "__main__":
    main()
