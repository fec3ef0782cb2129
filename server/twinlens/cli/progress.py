"""Progress on standard error: a bar on a terminal, a line a stage elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlens.similarity.build import Progress

_SENTENCES = {
    "waiting": "waiting for another process that is building this index",
    "reading": "reading the library",
    "fitting": "learning the library's vocabulary",
    "encoding": "embedding the library's definitions",
    "comparing": "comparing the library's definitions",
    "writing": "writing the index",
}


@contextmanager
def build_progress() -> Generator[Callable[[Progress], None]]:
    """Where a build reports to."""
    if not sys.stderr.isatty():
        yield _line_a_stage()
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("building the index", total=100)

        def on_progress(progress: Progress) -> None:
            if sentence := _SENTENCES.get(progress.stage):
                bar.update(task, completed=progress.percent, description=sentence)

        yield on_progress


def _line_a_stage() -> Callable[[Progress], None]:
    told: set[str] = set()

    def on_progress(progress: Progress) -> None:
        sentence = _SENTENCES.get(progress.stage)
        if sentence and sentence not in told:
            told.add(sentence)
            sys.stderr.write(f"{sentence} …\n")

    return on_progress
