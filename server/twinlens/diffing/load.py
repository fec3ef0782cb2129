"""Open a trace for comparison: Twinlens' own record, or the files of transformers' debugger. Values stay on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twinlens.diffing.debugger_format import read_debugger_trace, summary_files
from twinlens.diffing.values import Values
from twinlens.tracing.reading import read_trace
from twinlens.tracing.record import FULL_SUFFIX, RECORD_FILE, SUMMARY_SUFFIX, Tensor, Trace, TraceError


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """A trace and the way to its values."""

    path: Path
    """As the user named it."""
    trace: Trace
    values: Values


def load_trace(path: Path) -> LoadedTrace:
    """The trace in a folder, or the one that a summary file belongs to.

    Raises:
        TraceError: there is no trace, or it is damaged: its record, or a tensor file that is missing, cut short,
            outside of the folder, or of another shape than the record says.
    """
    folder = path if path.is_dir() else path.parent
    if (folder / RECORD_FILE).exists():
        trace = read_trace(folder)
        loaded = LoadedTrace(path, trace, Values(folder))
    else:
        found = read_debugger_trace(_debugger_file(path))
        loaded = LoadedTrace(path, found.trace, Values(folder, found.printed))
    for tensor in _tensors(loaded.trace):
        loaded.values.check(tensor)
    return loaded


def _debugger_file(path: Path) -> Path:
    if not path.exists():
        raise TraceError(f"{path} does not exist; choose a trace's folder or its summary file.")
    if path.is_dir():
        files = summary_files(path)
        if not files:
            raise TraceError(
                f"{path} holds no trace: neither {RECORD_FILE} nor a *{SUMMARY_SUFFIX}; choose a trace's folder."
            )
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise TraceError(f"{path} holds {len(files)} forwards; name the file of one of them: {names}.")
        return files[0]
    full = path.with_name(path.name.removesuffix(SUMMARY_SUFFIX) + FULL_SUFFIX)
    return full if path.name.endswith(SUMMARY_SUFFIX) and full.exists() else path


def _tensors(trace: Trace) -> Iterator[Tensor]:
    """Each recorded tensor once."""
    seen: set[int] = set()
    for parameter in trace.parameters:
        seen.add(id(parameter.tensor))
        yield parameter.tensor
    for call in trace.calls:
        for slot in (*call.inputs, *call.outputs):
            tensor = slot.tensor
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield tensor
