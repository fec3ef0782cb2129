"""How fast two traces are compared: `python benchmarks/diffing.py [--calls 100000] [--gigabytes 2]`.

Prints time and memory of `twinlens diff` as a process: for a synthetic pair of traces with that many calls and
statistics alone, and for a real pair of packed traces of that size, of two models that differ in one layer. Beside the
second stands the time that reading the same bytes from the same disk takes. Both times are taken with the files out of
the operating system's cache, where it lets them be dropped.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TextIO

import torch
from torch import nn
from twinlens import model_addition_debugger_context
from twinlens.tracing import lines
from twinlens.tracing.record import RECORD_FILE, Call, Forward, Info, Slot, Statistics, Tensor

DIFF = "from twinlens.cli import main; main()"
CALLS_A_LAYER = 12
WIDTH = 2048
TOKENS = 8192
BLOCK = 1 << 22


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        statistics_alone(Path(scratch), asked.calls)
    with tempfile.TemporaryDirectory() as scratch:
        packed(Path(scratch), asked.gigabytes)


def statistics_alone(scratch: Path, calls: int) -> None:
    """A decoder of as many layers as it takes; the port's numbers are off by float32's noise."""
    folders = scratch / "reference", scratch / "port"
    for folder, off in zip(folders, (0.0, 1e-7), strict=True):
        folder.mkdir()
        with (folder / RECORD_FILE).open("w", encoding="utf-8") as stream:
            made = _Record(stream, off).write(calls // CALLS_A_LAYER)
    run = diffed(folders)
    print(f"{made} calls a trace, statistics alone: {run}", flush=True)


def packed(scratch: Path, gigabytes: float) -> None:
    """Linear layers, of which the port's middle one has another bias."""
    layers = max(2, round(gigabytes * 2**30 / (4 * WIDTH * (TOKENS + WIDTH))))
    folders = scratch / "reference", scratch / "port"
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers)))
    x = torch.randn(1, TOKENS, WIDTH)
    for folder in folders:
        with model_addition_debugger_context(model, str(folder), packed=True):
            model(x)
        with torch.no_grad():
            model.get_parameter(f"{layers // 2}.bias").add_(0.01)
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    reading = min(_read(files) for _ in range(2))
    _drop(files)
    run = diffed(folders)
    print(
        f"{size / 2**30:.1f} GiB of packed traces: {run}; reading the same bytes takes {reading:.1f} s "
        f"({size / reading / 2**20:.0f} MiB/s): {reading / run.seconds:.2f} of the disk's speed"
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Of a process: wall and CPU seconds, peak memory in bytes, and the line that it ended with."""

    seconds: float
    cpu: float
    memory: int
    said: str

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.cpu:.1f} s of CPU, {self.memory / 2**30:.2f} GiB ({self.said})"


def diffed(folders: Sequence[Path]) -> Run:
    """`twinlens diff` as a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", DIFF, "diff", *map(str, folders)], stdout=subprocess.PIPE, text=True
    )
    said = process.stdout.readline().strip() if process.stdout else ""
    if process.stdout:
        process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise SystemExit(f"twinlens diff ended with {code}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, _bytes(usage), said)


def _bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _read(files: Iterable[Path]) -> float:
    """Seconds to read `files` one after the other, from the disk as far as the system drops its cache."""
    files = list(files)
    _drop(files)
    block = bytearray(BLOCK)
    start = time.perf_counter()
    for file in files:
        with file.open("rb", buffering=0) as stream:
            while stream.readinto(block):
                pass
    return time.perf_counter() - start


def _drop(files: Iterable[Path]) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class _Record:
    """Writes the record of a trace that nobody ran, with statistics like a decoder's."""

    def __init__(self, stream: TextIO, off: float) -> None:
        self._stream = stream
        self._off = off
        self._random = random.Random(1)
        self._tensors = count()
        self._calls = count()
        self._seen: set[int] = set()

    def write(self, layers: int) -> int:
        """How many calls the record holds."""
        self._line(lines.trace_line(Info("Decoder", "2026-01-01T00:00:00Z", dtype="float32")))
        x = self._tensor()
        self._line(lines.forward_line(0, "0" * 16))
        root = self._enter("Decoder", "Decoder", None, x)
        for layer in range(layers):
            x = self._layer(f"Decoder.layers.{layer}", root, x)
        self._leave(root, x)
        self._line(lines.forward_end_line(Forward(0, "0" * 16, "complete", 1.0)))
        self._line(lines.end_line(1.0))
        return next(self._calls)

    def _layer(self, path: str, root: int, x: Tensor) -> Tensor:
        layer = self._enter(path, "DecoderLayer", root, x)
        x = self._part(f"{path}.input_layernorm", "RMSNorm", layer, x)
        x = self._block(f"{path}.self_attn", "Attention", [f"{name}_proj" for name in "qkvo"], layer, x)
        x = self._part(f"{path}.post_attention_layernorm", "RMSNorm", layer, x)
        x = self._block(f"{path}.mlp", "MLP", ["gate_proj", "up_proj", "down_proj"], layer, x)
        return self._leave(layer, self._tensor())

    def _block(self, path: str, cls: str, projections: Sequence[str], parent: int, x: Tensor) -> Tensor:
        block = self._enter(path, cls, parent, x)
        for name in projections:
            out = self._part(f"{path}.{name}", "Linear", block, x)
        return self._leave(block, out)

    def _part(self, path: str, cls: str, parent: int, x: Tensor) -> Tensor:
        return self._leave(self._enter(path, cls, parent, x), self._tensor())

    def _enter(self, path: str, cls: str, parent: int | None, x: Tensor) -> int:
        index = next(self._calls)
        call = Call(index, parent, 0, path, cls, 0, (Slot("hidden_states", x),))
        self._line(lines.enter_line(call, self._new(x)))
        return index

    def _leave(self, index: int, x: Tensor) -> Tensor:
        self._line(lines.leave_line(index, 0.001, (Slot("", x),), self._new(x)))
        return x

    def _new(self, x: Tensor) -> list[Tensor]:
        is_new = x.id not in self._seen
        self._seen.add(x.id)
        return [x] if is_new else []

    def _tensor(self) -> Tensor:
        number, value = next(self._tensors), self._random.random() * (1 + self._off)
        numbers = Statistics(value, 1 + value, -value - 3, value + 3, value + 3, 100 * (1 + value), 0, 0, 0, 0)
        return Tensor(number, (2, 128, 512), "float32", (65536, 512, 1), "cpu", number, numbers)

    def _line(self, line: str) -> None:
        self._stream.write(line + "\n")


if __name__ == "__main__":
    main()
