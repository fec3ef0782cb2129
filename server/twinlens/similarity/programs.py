"""Where the two processes run and where they keep the index: their interpreter, their command lines, their folder."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from twinlens.similarity.embedder_names import DEFAULT
from twinlens.similarity.lending import folder_of
from twinlens.similarity.processes import LineProcess
from twinlens.source.library import Library


@dataclass(frozen=True, slots=True)
class SimilaritySettings:
    """`interpreter` is the Python that embeds and searches; `library` and `workspace` are folders."""

    interpreter: str
    library: tuple[str, ...]
    workspace: tuple[str, ...]
    cache_dir: str
    embedder: str | None = None

    @property
    def embedder_name(self) -> str:
        return self.embedder or DEFAULT

    def index_of(self, library: Library) -> Path:
        return index_folder(Path(self.cache_dir), library, self.embedder_name)


def index_folder(cache_dir: Path, library: Library, embedder: str) -> Path:
    """Where the index of one library and one embedder is kept: a readable name and a hash of what tells it apart."""
    key = "\n".join([*map(str, library.roots), embedder])
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", library.version or library.roots[0].name).strip("-")
    return cache_dir / f"index-{readable}-{hashlib.blake2b(key.encode(), digest_size=4).hexdigest()}"


async def start_worker(settings: SimilaritySettings) -> LineProcess:
    """The process that answers. Raises `OSError` where the interpreter cannot be started."""
    return await _start(settings, "serve")


async def start_builder(settings: SimilaritySettings, library: Library, afresh: bool) -> LineProcess:
    """The process that brings the index of `library` up to date. Raises `OSError` as `start_worker` does."""
    return await _start(
        settings,
        "build",
        *(part for root in library.roots for part in ("--root", str(root))),
        *("--origin", library.origin, "--version", library.version or ""),
        *("--index", str(settings.index_of(library)), "--embedder", settings.embedder_name),
        *(["--afresh"] if afresh else []),
    )


async def _start(settings: SimilaritySettings, *arguments: str) -> LineProcess:
    lent = folder_of("filelock")
    extra = ["--borrow", lent] if lent else []
    command = [settings.interpreter, "-m", "twinlens.similarity.worker", *extra, *arguments]
    return await LineProcess.start(command, _environment_path())


def _environment_path() -> str:
    """The folder that holds the package `twinlens` and, in the extension, nothing else."""
    return str(Path(__file__).resolve().parents[2])
