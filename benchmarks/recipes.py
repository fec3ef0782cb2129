"""How many of the installed transformers' base models trace with no recipe written for them.

    python benchmarks/recipes.py                        # every base model: an hour on two cores
    python benchmarks/recipes.py --sample 50 --draw 1   # some, drawn at random
    python benchmarks/recipes.py LlamaModel ViTModel

Each class is prepared and traced (statistics only) in a process of its own, which is forked from one that has imported
torch and transformers, and killed after `--limit` seconds or when it asks for more than `--gigabytes`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

import torch
import transformers
from transformers.models.auto.configuration_auto import model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
from twinlens.tracing.job import Finished, Job
from twinlens.tracing.reading import read_header
from twinlens.tracing.run import execute

_MISSING = re.compile(r"(?:requires the |No module named ')(\w+)")


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    traced: bool
    seconds: float
    source: str
    reason: str


def base_models() -> dict[str, str]:
    """The classes of `AutoModel`: the package of transformers that each is in, by its name."""
    packages: dict[str, str] = {}
    for model_type, value in MODEL_MAPPING_NAMES.items():
        for name in [value] if isinstance(value, str) else value:
            packages[name] = f"transformers.models.{model_type_to_module_name(model_type)}"
    return dict(sorted(packages.items()))


def trace_class(name: str, gigabytes: int, answers: Connection) -> None:
    """In the forked process: everything that `twinlens trace` does for a class without a recipe."""
    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            target=f"{class_module(name)}:{name}", root=folder, folder=str(Path(folder, "trace")), stats_only=True
        )
        outcome = execute(job, lambda _progress: None)
        if not isinstance(outcome, Finished):
            answers.send((False, "", outcome.message))
        elif outcome.error:
            answers.send((False, "", outcome.error))
        else:
            answers.send((True, read_header(Path(outcome.folder)).recipe, ""))


def class_module(name: str) -> str:
    """A few classes are in the `__init__` of nothing."""
    if hasattr(transformers, name):
        return getattr(transformers, name).__module__
    package = base_models()[name]
    return f"{package}.modeling_{package.rpartition('.')[2]}"


def try_class(name: str, limit: float, gigabytes: int) -> Result:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    began = time.perf_counter()
    process = context.Process(target=trace_class, args=(name, gigabytes, theirs))
    process.start()
    theirs.close()
    try:
        answered = ours.recv() if ours.poll(limit) else (False, "", f"not done after {limit:.0f} s")
    except EOFError:
        process.join()
        answered = (False, "", f"the process ended with {process.exitcode}")
    process.kill()
    process.join()
    traced, source, reason = answered
    return Result(name, traced, time.perf_counter() - began, source, " ".join(reason.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="classes to try; all base models if none is given")
    parser.add_argument("--sample", type=int, help="try so many, drawn at random")
    parser.add_argument("--draw", type=int, default=0, help="seed of the draw")
    parser.add_argument("--limit", type=float, default=120, help="seconds a class")
    parser.add_argument("--gigabytes", type=int, default=8, help="address space a class")
    parser.add_argument("--json", type=Path, help="write the results here too")
    arguments = parser.parse_args()
    names = arguments.names or list(base_models())
    if arguments.sample:
        names = random.Random(arguments.draw).sample(names, min(arguments.sample, len(names)))
    results: list[Result] = []
    for name in names:
        results.append(try_class(name, arguments.limit, arguments.gigabytes))
        last = results[-1]
        word = "traced" if last.traced else "failed"
        print(f"{word} {last.seconds:5.1f} s  {name}  {last.source or last.reason}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1), encoding="utf-8")
    report(results)


def report(results: list[Result]) -> None:
    traced = sum(result.traced for result in results)
    missing = [result for result in results if _MISSING.search(result.reason)]
    print(f"\n{traced} of {len(results)} base models trace without a recipe: {traced / len(results):.1%}")
    print(f"{len(missing)} of the others need a package that is not installed here")
    kinds = Counter(kind_of(result.reason) for result in results if not result.traced)
    for kind, count in kinds.most_common():
        print(f"{count:4}  {kind}")


def kind_of(reason: str) -> str:
    """A reason without what differs from model to model."""
    package = _MISSING.search(reason)
    if package:
        return f"{package.group(1)} is not installed"
    inner = re.search(r"\((\w+): ", reason)
    return inner.group(1) if inner else re.sub(r"[\d.]+", "N", reason)[:80]


if __name__ == "__main__":
    sys.exit(main())
