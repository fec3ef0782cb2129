"""Compare two traces from end to end: load, align, compare, judge, diagnose."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from twinlens.diffing.align import Alignment, align
from twinlens.diffing.causes.evidence import Finding
from twinlens.diffing.compare import Tolerance
from twinlens.diffing.diagnose import Diagnoser, Diagnosis
from twinlens.diffing.differences import effective
from twinlens.diffing.limits import limits_of
from twinlens.diffing.load import LoadedTrace, load_trace
from twinlens.diffing.mapfile import EMPTY, MapFile
from twinlens.diffing.mapnotes import entries_in_vain
from twinlens.diffing.nodes import Node, Side
from twinlens.diffing.noise import noise_of
from twinlens.diffing.points import Comparison, PairedCall
from twinlens.diffing.unseen_weights import unseen_weights
from twinlens.diffing.verdict import Judge, Verdict
from twinlens.tracing.record import Call

Outcome = Literal["agree", "differ", "inputs differ", "not comparable"]
Progress = Callable[[str], None]

_FEWEST_COMPARED = 0.15
"""Share of the smaller model's calls that must be comparable for two traces to be of one model."""


@dataclass(frozen=True, slots=True)
class Options:
    """`rtol` is the relative L2 error up to which a tensor agrees (the dtype's noise floor by default); elements beyond
    `atol + rtol |r|` are counted as mismatched. `noise` is a trace of the reference in the port's dtype: its distance
    from the reference is taken for noise."""

    rtol: float | None = None
    atol: float = 1e-8
    mapping: MapFile = EMPTY
    noise: Path | None = None
    is_replay: bool = False
    """Whether each of the port's modules was given the reference's inputs: then nothing is inherited."""


@dataclass(frozen=True, slots=True)
class Diff:
    """All that was found."""

    reference: Side
    port: Side
    alignment: Alignment
    calls: tuple[PairedCall, ...]
    judge: Judge
    diagnoses: tuple[Diagnosis, ...]
    outcome: Outcome
    reason: str
    """One sentence: why the outcome is what it is."""
    notes: tuple[str, ...]
    """What a reader must know before blaming the port."""

    def verdict(self, item: PairedCall) -> tuple[Verdict, float]:
        """Of one pair of calls: its word, and its outputs' worst relative error (NaN where nothing can be compared)."""
        verdict, error = self.judge.verdict(item)
        return next(filter(None, map(self.origin_verdict, item.port)), verdict), error

    def origin_verdict(self, port_call: int) -> Verdict | None:
        """Of a call of the port in which a fault lies; None of any other."""
        if not any(is_origin(diagnosis, port_call) for diagnosis in self.diagnoses):
            return None
        calls, children = self.port.trace.calls, self.port.flow.children[port_call]
        holds_modules = any(not calls[child].is_function for child in children)
        return "children agree, parent differs" if holds_modules else "originates here"

    def unpaired(self) -> tuple[list[Node], list[Node]]:
        """Modules without a partner, of the reference and of the port; functions left out."""
        return (
            [
                n
                for n in self.reference.nodes.values()
                if n.path not in self.alignment.by_reference and not n.is_function
            ],
            [n for n in self.port.nodes.values() if n.path not in self.alignment.by_port and not n.is_function],
        )


@contextmanager
def _without_garbage_collection() -> Generator[None]:
    """What a diff holds has hardly a cycle, and the collector's scans of a growing heap take half of a large diff."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def diff_folders(
    reference: Path, port: Path, options: Options | None = None, on_progress: Progress | None = None
) -> Diff:
    """Load both traces and compare them. Raises `TraceError` where one cannot be read."""
    tell = on_progress or (lambda _stage: None)
    with _without_garbage_collection():
        tell("reading the reference")
        ours = load_trace(reference)
        tell("reading the port")
        theirs = load_trace(port)
        return diff_traces(ours, theirs, options, on_progress)


def diff_traces(
    reference: LoadedTrace, port: LoadedTrace, options: Options | None = None, on_progress: Progress | None = None
) -> Diff:
    """Compare two traces; `reference` is what the port should do. Raises `TraceError` where values cannot be read."""
    with _without_garbage_collection():
        return _diffed(reference, port, options or Options(), on_progress or (lambda _stage: None))


def _diffed(reference: LoadedTrace, port: LoadedTrace, options: Options, tell: Progress) -> Diff:
    ours, theirs = Side(reference), Side(port)
    tell("pairing modules")
    alignment = align(ours, theirs, options.mapping)
    tell("comparing")
    limits = limits_of(ours, theirs, options.rtol, _measured_noise(ours, options))
    tolerance = Tolerance(options.rtol if options.rtol is not None else limits.default.floor, options.atol)
    comparison = Comparison(ours, theirs, alignment, tolerance)
    calls = list(comparison.paired_calls())
    tell("looking for causes")
    judge = Judge(comparison, calls, limits, is_replay=options.is_replay)
    diagnoses = tuple(Diagnoser(judge).diagnose())
    outcome, reason = _outcome(ours, theirs, judge, diagnoses)
    notes = (
        *entries_in_vain(options.mapping, alignment, ours, theirs),
        *_notes(ours, theirs, calls),
        *unseen_weights(judge),
    )
    if outcome == "not comparable":
        diagnoses = ()
    return Diff(ours, theirs, alignment, tuple(calls), judge, diagnoses, outcome, reason, notes)


def _measured_noise(reference: Side, options: Options) -> Mapping[int, float]:
    """By reference tensor id: how far the same model in another dtype lies from it."""
    if options.noise is None:
        return {}
    other = Side(load_trace(options.noise))
    comparison = Comparison(reference, other, align(reference, other), Tolerance(0.0, 0.0))
    measured: dict[int, float] = {}
    for item in comparison.paired_calls():
        for point in (*item.inputs, *item.outputs):
            error = effective(point)
            if math.isfinite(error):
                for tensor in point.reference:
                    measured[tensor.id] = min(error, measured.get(tensor.id, math.inf))
    return measured


def _outcome(ours: Side, theirs: Side, judge: Judge, diagnoses: tuple[Diagnosis, ...]) -> tuple[Outcome, str]:
    compared = [item for item in judge.calls if any(point.difference.is_comparable for point in item.outputs)]
    fewer = min(_module_calls(ours), _module_calls(theirs))
    if not compared:
        return "not comparable", "nothing that both traces hold can be compared"
    if len(compared) < _FEWEST_COMPARED * fewer and not any(judge.is_root(item) for item in compared):
        return "not comparable", (
            f"only {len(compared)} of {fewer} calls can be compared, {ours.root} and {theirs.root} being two models it "
            "seems; pair their modules in a map file if they are one"
        )
    if judge.input_points:
        names = ", ".join(dict.fromkeys(point.place_port for point in judge.input_points))
        return "inputs differ", f"the two models were given other inputs: {names}"
    if diagnoses:
        return "differ", f"{len(diagnoses)} {'origin' if len(diagnoses) == 1 else 'origins'} of difference"
    return _of_equal(ours, theirs)


def _of_equal(ours: Side, theirs: Side) -> tuple[Outcome, str]:
    """Where no difference was found: a run that ended early has not shown what the other went on to do."""
    raised = [any(forward.status == "raised" for forward in side.trace.forwards) for side in (ours, theirs)]
    if raised[0] != raised[1]:
        who, other, side = ("reference", "port", ours) if raised[0] else ("port", "reference", theirs)
        call = _raising_call(side)
        where = f" in {call.path}" if call else ""
        return "differ", f"the {who}'s forward raised{where}, the {other}'s did not; no difference before that"
    for name, side in (("reference", ours), ("port", theirs)):
        if not side.trace.is_complete:
            return "agree", f"no difference up to where the {name}'s trace ends, which was not finished"
    return "agree", "no difference beyond the noise of the dtype"


def _raising_call(side: Side) -> Call | None:
    """The innermost call that raised."""
    return next((call for call in reversed(side.trace.calls) if call.error), None)


def _module_calls(side: Side) -> int:
    return sum(not call.is_function for call in side.trace.calls)


def _notes(ours: Side, theirs: Side, calls: list[PairedCall]) -> list[str]:
    notes: list[str] = []
    for name, side in (("reference", ours), ("port", theirs)):
        info = side.trace.info
        if not side.trace.is_complete:
            notes.append(f"the {name}'s trace was not finished: {len(side.trace.calls)} calls were recorded")
        for forward in side.trace.forwards:
            if forward.status == "raised":
                last = _raising_call(side)
                error = f" in {last.path} ({last.error.type}: {last.error.message})" if last and last.error else ""
                notes.append(f"the {name}'s forward {forward.index} raised{error}")
        if info.training:
            notes.append(f"the {name} ran in training mode; two runs of it may differ")
    low = [side.trace.info.dtype for side in (ours, theirs) if noise_of(side.trace.info.dtype.split(", ")).unit > 1e-4]
    if low:
        notes.append(
            f"in {low[-1]} some faults lie below the noise (GELU's variants do): run both in float32 before you trust "
            "agreement"
        )
    window = ours.trace.info.config.get("sliding_window")
    length = max((shape[1] for shape in _token_shapes(ours)), default=0)
    if isinstance(window, int) and not isinstance(window, bool) and 0 < length <= window:
        notes.append(f"the prompt has {length} tokens, the window {window}: a wrong window cannot show")
    return [*notes, *_lone_inputs(ours, theirs, calls)]


def _lone_inputs(ours: Side, theirs: Side, calls: list[PairedCall]) -> Iterator[str]:
    """Tensors that the root of one side alone was given."""
    root = next((item for item in calls if item.reference == (0,) and item.port == (0,)), None)
    if root is None:
        return
    for name, side, paired in (
        ("reference", ours, {point.place_reference for point in root.inputs}),
        ("port", theirs, {point.place_port for point in root.inputs}),
    ):
        for slot in side.trace.calls[0].inputs:
            if slot.tensor is not None and slot.place not in paired:
                yield f"only the {name} was given {slot.place}"


def _token_shapes(side: Side) -> list[tuple[int, ...]]:
    tensors = [slot.tensor for slot in side.trace.calls[0].inputs if slot.tensor] if side.trace.calls else []
    return [tensor.shape for tensor in tensors if len(tensor.shape) == 2 and "int" in tensor.dtype]


def causes_or_unknown(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """The causes; where there is none, one that says so and what was tried."""
    if diagnosis.causes:
        return diagnosis.causes
    if not diagnosis.tried:
        why = "causes are tried on values, and these were not recorded: trace both sides with their values"
    else:
        why = f"no cause that is known here explains it; tried in vain: {', '.join(diagnosis.tried)}"
    return (Finding("unknown", why, math.nan),)


def is_origin(diagnosis: Diagnosis, port_frame: int) -> bool:
    """Whether the call is where a fault lies."""
    return any(origin.port_frame == port_frame for origin in (diagnosis.origin, *diagnosis.also))
