"""How fast the index is built, loaded and asked."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
from twinlens.similarity.answers import QueryDefinition, QueryFile
from twinlens.similarity.build import build_index
from twinlens.similarity.corpus import Entry
from twinlens.similarity.embedder import open_embedder
from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.index import load
from twinlens.similarity.search import Searcher
from twinlens.similarity.vectors import VectorIndex
from twinlens.source.library import Library, find_library

T = TypeVar("T")

RANKED = 100
IN_A_FILE = 60
WIDTH = 256


def times() -> None:
    """Print the times of a first build, a second start, a ranking and a whole `twinlens detect`."""
    library = installed()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "index"
        seconds, built = timed(lambda: build_index(library, folder, DEFAULT))
        print(f"build, {len(built.index.entries):,} definitions      {seconds:8.2f} s")
        seconds, searcher = timed(lambda: opened(library, folder))
        print(f"second start: load                     {seconds:8.2f} s")
        queries = sample(searcher, RANKED)
        first = cpu_seconds(lambda: [searcher.answers(file, [name]) for file, name in queries])
        again = cpu_seconds(lambda: [searcher.answers(file, [name]) for file, name in queries])
        lists = {entry.identifier: sorted(tokens) for entry, tokens in zip(*entries_and_tokens(searcher), strict=True)}
        loop = cpu_seconds(lambda: upstreams_loop(lists, queries[::10])) * 10
        print(f"answer for one definition, first time  {1000 * first / RANKED:8.2f} ms of CPU")
        print(f"answer for one definition, again       {1000 * again / RANKED:8.2f} ms of CPU")
        print(f"upstream's Jaccard loop alone          {1000 * loop / RANKED:8.2f} ms of CPU")
        print(f"the loop takes                         {loop / first:8.1f} times as long as a first answer")
        path = modeling_file_of(searcher, scratch)
        program = [sys.executable, "-c", "from twinlens.cli import main; main()"]
        command = [*program, "detect", "--index", str(folder), "--modeling-file", str(path)]
        seconds, _ = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        print(f"twinlens detect, {IN_A_FILE} definitions         {seconds:8.2f} s, the whole process")


def recall(definitions: int) -> None:
    """Print how many of the five nearest rows the approximate index finds in a synthetic library of that size.

    Rows lie in families of five around random centres, as copies of a class do.
    """
    noise = np.random.default_rng(0)
    rows = np.repeat(noise.standard_normal((-(-definitions // 5), WIDTH), dtype=np.float32), 5, axis=0)[:definitions]
    rows += np.float32(0.3) * noise.standard_normal(rows.shape, dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    allowed = bytearray(b"\x01" * definitions)
    seconds, approximate = timed(lambda: VectorIndex(rows, exact_up_to=0))
    print(f"approximate index of {definitions:,} rows built  {seconds:8.2f} s")
    exact = VectorIndex(rows, exact_up_to=definitions)
    queries = rows[:: max(1, definitions // RANKED)][:RANKED]
    slow, wanted = timed(lambda: [exact.nearest(query, allowed, 5) for query in queries])
    fast, found = timed(lambda: [approximate.nearest(query, allowed, 5) for query in queries])
    hits = sum(len(one.keys() & other.keys()) for one, other in zip(wanted, found, strict=True))
    print(f"recall of the five nearest             {hits / sum(map(len, wanted)):8.3f}")
    print(f"a search, exact and approximate        {1000 * slow / RANKED:8.2f} ms {1000 * fast / RANKED:8.2f} ms")


def installed() -> Library:
    found = find_spec("transformers")
    library = find_library((), Path(found.origin).parent if found and found.origin else None)
    if library is None:
        sys.exit("transformers is not installed here")
    return library


def opened(library: Library, folder: Path) -> Searcher:
    index = load(folder)
    return Searcher(index, library.roots, open_embedder(index.embedder, folder))


def sample(searcher: Searcher, count: int) -> list[tuple[QueryFile, str]]:
    """Definitions spread over the library, each as if it were alone in its file."""
    entries = searcher.index.entries
    picked = entries[:: len(entries) // count][:count]
    return [
        (
            QueryFile(
                entry.model,
                (QueryDefinition(entry.name, entry.kind, entry.line, entry.bases, entry.methods, entry.sanitised),),
            ),
            entry.name,
        )
        for entry in picked
    ]


def upstreams_loop(lists: Mapping[str, Sequence[str]], queries: Sequence[tuple[QueryFile, str]]) -> None:
    """What transformers' own detector does for a query: every definition's token list against the query's set."""
    for file, name in queries:
        tokens = set(re.findall(r"\b[a-zA-Z_][a-zA-Z0-9_]*\b", file.definitions[0].sanitised))
        own = normal(file.model)
        scores = []
        for identifier, listed in lists.items():
            relative, other_name = identifier.split(":", 1)
            model = Path(relative).parts[0]
            if other_name == name or normal(model) == own:
                continue
            other = set(listed)
            scores.append((len(tokens & other) / max(1, len(tokens | other)), f"{model}::{other_name}"))
        sorted(scores, reverse=True)[:5]


def entries_and_tokens(searcher: Searcher) -> tuple[Sequence[Entry], Sequence[frozenset[str]]]:
    return searcher.index.entries, searcher.index.tokens


def normal(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", model.lower())


def modeling_file_of(searcher: Searcher, folder: str) -> Path:
    """A modeling file of `IN_A_FILE` classes that the library knows under other names."""
    classes = [entry for entry in searcher.index.entries if entry.kind == "class"]
    picked = {entry.name: entry for entry in classes[:: len(classes) // IN_A_FILE]}
    text = "\n\n".join(re.sub("Model", "Nova", entry.sanitised) for entry in list(picked.values())[:IN_A_FILE])
    path = Path(folder) / "modeling_nova.py"
    path.write_text(text, encoding="utf-8")
    return path


def timed(run: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def cpu_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
