"""A diff in words for a terminal, and as JSON. Standard library only."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from twinlens.diffing.causes.evidence import Finding
from twinlens.diffing.compare import Difference
from twinlens.diffing.diagnose import Diagnosis
from twinlens.diffing.diff import Diff, causes_or_unknown
from twinlens.diffing.differences import Origin, effective
from twinlens.diffing.nodes import Side
from twinlens.diffing.points import PairedCall, Point
from twinlens.diffing.shared_paths import shared_path
from twinlens.tracing.record import Module, Source

_MOST_LISTED = 12
_WORDS = {
    "agree": "The two traces agree",
    "differ": "The two traces differ",
    "inputs differ": "The inputs differ already",
    "not comparable": "The two traces cannot be compared",
}


def as_json(diff: Diff) -> dict[str, Any]:
    """JSON values only; numbers that are not finite are the strings `NaN`, `Infinity`, `-Infinity`."""
    unpaired = diff.unpaired()
    return {
        "verdict": diff.outcome,
        "reason": diff.reason,
        "notes": list(diff.notes),
        "reference": side_as_json(diff.reference),
        "port": side_as_json(diff.port),
        "origins": [_origin_as_json(diff, diagnosis) for diagnosis in diff.diagnoses],
        "unpaired": {
            "reference": [node.path for node in unpaired[0]],
            "port": [node.path for node in unpaired[1]],
        },
        "pairs": [pair_as_json(diff, item) for item in diff.calls],
    }


def side_as_json(side: Side) -> dict[str, Any]:
    info = side.trace.info
    return {
        "path": str(side.loaded.path),
        "class": info.class_name,
        "dtype": info.dtype,
        "created": info.created,
        "complete": side.trace.is_complete,
        "calls": len(side.trace.calls),
    }


def _origin_as_json(diff: Diff, diagnosis: Diagnosis) -> dict[str, Any]:
    origin = diagnosis.origin
    point = worst_point(origin)
    return {
        **_places(diff, origin),
        "tensor": "inputs" if _is_input(diff, origin) else "outputs",
        "seen_at": {
            "reference": _joined(origin.seen_by.pair.reference),
            "port": _joined(origin.seen_by.pair.port),
            "side": origin.point.side,
            "place": origin.point.place_port,
        },
        "error": error_as_json(point),
        "causes": [cause_as_json(diff, diagnosis, cause) for cause in causes_or_unknown(diagnosis)],
        "tried": list(diagnosis.tried),
        "also": [_places(diff, other) for other in diagnosis.also],
    }


def _is_input(diff: Diff, origin: Origin) -> bool:
    return origin.point in diff.judge.input_points


def _places(diff: Diff, origin: Origin) -> dict[str, Any]:
    reference, port = diff.reference.trace.calls[origin.reference_frame], diff.port.trace.calls[origin.port_frame]
    return {"reference": reference.path, "port": port.path, "call": port.number, "forward": port.forward}


def cause_as_json(diff: Diff, diagnosis: Diagnosis, cause: Finding) -> dict[str, Any]:
    origin = diagnosis.origin
    return {
        "code": cause.code,
        "message": cause.message,
        "residual": number(cause.residual),
        "change": cause.change,
        "reference": source_of(diff.reference, origin.reference_frame),
        "port": source_of(diff.port, origin.port_frame),
    }


def source_of(side: Side, call: int) -> str:
    """`file:line` of the forward that made a call; for a class without a source, of the innermost around it."""
    found = _source(side, call)
    return f"{found[1].file}:{found[1].line}" if found else ""


def source_within(root: Path, side: Side, call: int) -> str:
    """As `source_of`, for readers on another machine."""
    found = _source(side, call)
    return f"{shared_path(Path(found[1].file), found[0].qualified_name, root)}:{found[1].line}" if found else ""


def _source(side: Side, call: int) -> tuple[Module, Source] | None:
    for index in (call, *side.flow.ancestors(call)):
        module = side.modules.get(side.trace.calls[index].path)
        if module is not None and module.source is not None and not module.qualified_name.startswith("torch."):
            return module, module.source
    return None


def worst_point(origin: Origin) -> Difference:
    point = origin.point
    return point.permuted if point.permuted is not None and point.permuted.is_comparable else point.difference


def error_as_json(difference: Difference) -> dict[str, Any]:
    return {
        "relative": number(difference.relative),
        "max_abs": number(difference.max_abs),
        "index": list(difference.index),
        "reference": number(difference.reference),
        "port": number(difference.port),
        "cosine": number(difference.cosine),
        "mismatched": number(difference.mismatched),
        "basis": difference.basis,
    }


def pair_as_json(diff: Diff, item: PairedCall) -> dict[str, Any]:
    verdict, error = diff.verdict(item)
    worst = _worst_output(item)
    return {
        "reference": _joined(item.pair.reference),
        "port": _joined(item.pair.port),
        "call": diff.port.trace.calls[item.port[0]].number,
        "forward": diff.port.trace.calls[item.port[0]].forward,
        "how": item.pair.how,
        "verdict": verdict,
        "error": {"relative": number(error), "max_abs": number(worst.max_abs if worst else math.nan)},
        **({"note": item.note} if item.note else {}),
    }


def _worst_output(item: PairedCall) -> Difference | None:
    points: list[Point] = [point for point in item.outputs if point.difference.is_comparable]
    if not points:
        return None
    worst = max(points, key=effective)
    return worst.permuted if worst.permuted is not None and worst.permuted.is_comparable else worst.difference


def _joined(paths: tuple[str, ...]) -> str | list[str]:
    return paths[0] if len(paths) == 1 else list(paths)


def number(value: float) -> float | str | None:
    """A number that JSON has; a non-finite one by name, NaN of "there is none" as well."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def dumped(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# in words


def as_text(diff: Diff) -> str:
    lines = [*_heading(diff), "", f"{_WORDS[diff.outcome]}: {diff.reason}."]
    for place, diagnosis in enumerate(diff.diagnoses, start=1):
        lines += ["", *_origin_lines(diff, diagnosis, place)]
    if diff.notes:
        lines += ["", *(f"note       {note}" for note in diff.notes)]
    lines += [*_depth(diff), *_unpaired_lines(diff)]
    return "\n".join(lines) + "\n"


def _heading(diff: Diff) -> Iterator[str]:
    for name, side in (("reference", diff.reference), ("port", diff.port)):
        info = side.trace.info
        details = ", ".join(filter(None, (info.dtype, f"{len(side.trace.calls)} calls", info.created)))
        yield f"{name:<10} {side.root}  {side.loaded.path}  ({details})"
    ways = Counter(pair.how for pair in diff.alignment.pairs)
    said = ", ".join(f"{count} by {how}" for how, count in ways.most_common())
    yield f"{'paired':<10} {len(diff.alignment.pairs)} modules ({said})"
    words = Counter(diff.verdict(item)[0] for item in diff.calls)
    yield f"{'verdicts':<10} {', '.join(f'{count} {word}' for word, count in words.most_common())}"


def _origin_lines(diff: Diff, diagnosis: Diagnosis, place: int) -> Iterator[str]:
    origin = diagnosis.origin
    reference, port = diff.reference.trace.calls[origin.reference_frame], diff.port.trace.calls[origin.port_frame]
    call = f" (call {port.number})" if port.number else ""
    yield f"{place}. {port.path}{call}"
    yield f"   {'reference':<10} {reference.path}  {source_of(diff.reference, origin.reference_frame)}".rstrip()
    yield f"   {'port':<10} {port.path}  {source_of(diff.port, origin.port_frame)}".rstrip()
    yield f"   {'error':<10} {error_in_words(worst_point(origin))}"
    if not _is_input(diff, origin) and port.path not in origin.seen_by.pair.port:
        side = "the input" if origin.point.side == "inputs" else "the output"
        yield f"   {'seen at':<10} {side} of {' + '.join(origin.seen_by.pair.port)}"
    for cause in causes_or_unknown(diagnosis):
        yield f"   {'cause':<10} {cause.code}: {cause.message}"
        if math.isfinite(cause.residual) and cause.code != "unknown":
            yield f"   {'proof':<10} put right, {cause.residual:.1e} is left"
        if cause.change:
            yield f"   {'change':<10} {cause.change}"
    if diagnosis.also:
        paths = [diff.port.trace.calls[other.port_frame].path for other in diagnosis.also]
        yield f"   {'also in':<10} {_listed(paths)}"


def error_in_words(difference: Difference) -> str:
    if math.isinf(difference.relative) and difference.unequal_non_finite == 0:
        return f"the reference is 0 throughout, the port up to {difference.max_abs:.3g}"
    if math.isinf(difference.relative):
        return f"NaN or infinite at {difference.unequal_non_finite} places where the other side is not"
    said = f"relative {difference.relative:.2e}"
    if difference.index or math.isfinite(difference.reference):
        at = f" at {list(difference.index)}" if difference.index else ""
        values = f"{difference.reference:.6g} in the reference, {difference.port:.6g} in the port"
        said += f", worst {difference.max_abs:.3g}{at}: {values}"
    if math.isfinite(difference.cosine):
        said += f", cosine {difference.cosine:.4f}"
    if difference.basis != "values":
        said += f" (from {difference.basis} alone)"
    return said


def _listed(names: Iterable[str]) -> str:
    names = list(dict.fromkeys(names))
    shown = ", ".join(names[:_MOST_LISTED])
    return f"{shown} and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else shown


def _depth(diff: Diff) -> Iterator[str]:
    """The error of each layer, where the model has a run of them."""
    layers = [
        item
        for item in diff.calls
        if not item.pair.is_group and item.pair.port[0].rpartition(".")[2].isdigit() and item.outputs
    ]
    if len(layers) < 2 or diff.outcome == "agree":
        return
    yield ""
    shown = layers if len(layers) <= _MOST_LISTED else [*layers[: _MOST_LISTED - 4], *layers[-4:]]
    for item in shown:
        verdict, error = diff.verdict(item)
        yield f"{item.pair.port[0]:<40} {error:9.2e}  {verdict}"


def _unpaired_lines(diff: Diff) -> Iterator[str]:
    unpaired = diff.unpaired()
    if any(unpaired):
        yield ""
    for name, nodes in zip(("reference", "port"), unpaired, strict=True):
        if nodes:
            yield f"unpaired in the {name}: {_listed(node.path for node in nodes)}"
