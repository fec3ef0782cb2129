"""The traces of a workspace, without reading them: the ends of each record. Standard library only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from twinlens.tracing.folders import TRACES_FOLDER
from twinlens.tracing.reading import read_header
from twinlens.tracing.record import RANK_FOLDER, RECORD_FILE, SUMMARY_SUFFIX, Info, TraceError

_TAIL_BYTES = 1 << 16


Status = Literal["complete", "raised", "unfinished", "unreadable"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One trace of a list. `status`: `complete`, `raised`, `unfinished` (killed, or still running) or `unreadable`."""

    folder: Path
    info: Info | None
    """None for one that is unreadable; `error` then says why."""
    status: Status
    error: str
    seconds: float | None
    """Of the last forward."""
    bytes: int
    summary: Path | None


def list_traces(roots: Iterable[Path]) -> list[Entry]:
    """The traces in `.twinlens/traces` of each root, the newest first."""
    entries: list[Entry] = []
    for root in roots:
        for record in (root / TRACES_FOLDER).glob(f"*/{RECORD_FILE}"):
            with suppress(FileNotFoundError):  # deleted or renamed while the list is made
                entries.append(describe_trace(record.parent))
    return sorted(entries, key=_age, reverse=True)


def describe_trace(folder: Path) -> Entry:
    """The trace in `folder`, described by the first and the last lines of its record.

    Raises:
        FileNotFoundError: the folder is gone.
    """
    size = sum(file.stat().st_size for file in _files(folder))
    summary = next(iter(sorted(folder.glob(f"*{SUMMARY_SUFFIX}"), key=lambda path: len(path.name))), None)
    try:
        info = read_header(folder)
        tail = list(_tail(folder / RECORD_FILE))
    except (TraceError, OSError) as error:
        return Entry(folder, None, "unreadable", str(error), None, size, summary)
    ended = any(line.get("kind") == "end" for line in tail)
    last = next((line for line in reversed(tail) if line.get("kind") == "forward_end"), {})
    raised = next((line["error"] for line in reversed(tail) if line.get("kind") == "leave" and "error" in line), None)
    was_stopped = raised is not None and raised[0] == KeyboardInterrupt.__name__
    status = _status(last.get("status")) if ended and not was_stopped else "unfinished"
    error = f"{raised[0]}: {raised[1]}" if raised and status == "raised" else ""
    return Entry(folder, info, status, error, last.get("seconds"), size, summary)


def _status(written: object) -> Status:
    return "complete" if written == "complete" else "raised" if written == "raised" else "unfinished"


def _age(entry: Entry) -> tuple[str, str]:
    return (entry.info.created if entry.info else "", entry.folder.name)


def _files(folder: Path) -> Iterator[Path]:
    ranks = folder.glob(RANK_FOLDER.format(rank=0).replace("0", "[0-9]"))
    for place in (folder, *ranks):
        yield from (Path(entry.path) for entry in os.scandir(place) if entry.is_file(follow_symlinks=False))


def _tail(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines in the last 64 KB of the record."""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        start = max(0, size - _TAIL_BYTES)
        stream.seek(start)
        lines = stream.read().split(b"\n")
    for line in lines[1:-1] if start else lines[:-1]:
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        if isinstance(fields, dict):
            yield fields
