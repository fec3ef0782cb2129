"""Try the candidate causes on each origin, and on what noise or an earlier origin may hide.

Every cause describes both sides by their own recorded tensors, so that it holds after an earlier fault as well: the
places that play one role (the same path with other numbers) are probed once, beside the origins themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from twinlens.diffing.causes import FAMILIES, Family
from twinlens.diffing.causes.evidence import Finding, Identity, Site, View
from twinlens.diffing.differences import Origin, effective
from twinlens.diffing.partners import partner_identities
from twinlens.diffing.points import PairedCall, Point
from twinlens.diffing.substitutes import substitutes
from twinlens.diffing.verdict import Judge
from twinlens.tracing.record import Module

_DIGITS = re.compile(r"\d[\d.e+-]*")
_NUMBER = re.compile(r"\.\d+(?=\.|$)")
_MOST_PROBES = 400
_MOST_REPEATED = 40
_OF_ONE_WEIGHT = ("transposed-weight", "fused-order", "missing-bias", "head-not-tied", "gate-up-swapped")
"""Causes that lie in a tensor, not in the code of a class: two modules of one class may have them apart."""
_LOW_PRECISION = 1e-5
"""Units of roundoff above it are of dtypes in which one more rounding is seen as such."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """An origin, its causes (the likeliest first; none where it is unknown), and what was tried in vain on the values;
    nothing where they were not recorded."""

    origin: Origin
    causes: tuple[Finding, ...]
    tried: tuple[str, ...]
    also: tuple[Origin, ...] = ()
    """Later origins of the same cause in the same role."""


class Diagnoser:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._comparison = judge.comparison
        self._substitutes = substitutes(judge.comparison, judge.calls) if judge.is_replay else {}
        self._of_frames: dict[tuple[str, int, int, bool], list[Finding]] = {}

    def diagnose(self) -> list[Diagnosis]:
        """In the order of time, repeated ones folded into the first."""
        origins = [*self._input_origins(), *self._judge.origins]
        found = [self._diagnosed(origin, is_clean=True) for origin in origins]
        frames = {(d.origin.reference_frame, d.origin.port_frame) for d in found}
        for origin in self._probes():
            if (origin.reference_frame, origin.port_frame) in frames:
                continue
            diagnosis = self._diagnosed(origin, is_clean=False)
            sure = tuple(cause for cause in diagnosis.causes if self._stands_alone(cause, origin))
            if sure:
                frames.add((origin.reference_frame, origin.port_frame))
                found.append(replace(diagnosis, causes=sure))
        found += list(self._repeated(found, frames))
        return self._folded(sorted((self._relocated(d) for d in found), key=lambda d: d.origin.time))

    def _stands_alone(self, cause: Finding, origin: Origin) -> bool:
        """Whether a cause is to be told where no origin was seen: rounding that stays below the noise is no fault."""
        limits = self._judge.limits
        if cause.code == "unknown" or (limits.override is not None and origin.error <= limits.override):
            return False
        floor = self._judge.limits.floor(origin.point)
        return cause.code != "low-precision-frequencies" or min(cause.effect, origin.error) > floor

    def _diagnosed(self, origin: Origin, *, is_clean: bool) -> Diagnosis:
        site = self._site(origin, is_clean=is_clean)
        causes: list[Finding] = []
        tried: list[str] = []
        for family in FAMILIES:
            hits = self._hits(family, site)
            causes += hits
            if not hits:
                tried.append(family.name)
            if any(hit.code != "unknown" for hit in hits):
                break
        causes.sort(key=lambda cause: cause.code == "unknown")
        return Diagnosis(origin, tuple(causes), tuple(tried) if origin.point.difference.basis == "values" else ())

    def _hits(self, family: Family, site: Site) -> list[Finding]:
        if not family.is_of_frame:
            return _tried(family, site)
        key = (family.name, site.reference.frame, site.port.frame, site.is_clean)
        if key not in self._of_frames:
            self._of_frames[key] = _tried(family, site)
        return self._of_frames[key]

    def _site(self, origin: Origin, *, is_clean: bool) -> Site:
        point, item = origin.point, origin.seen_by
        parts = self._comparison.parts(item.pair, point)
        place = max(range(len(parts)), key=lambda index: parts[index].error) if parts else 0
        ours, theirs = (tensors[place if len(tensors) > 1 else 0] for tensors in (point.reference, point.port))
        reference = View(self._judge.reference, origin.reference_frame, ours, origin.time)
        flow = self._judge.port.flow
        call = item.port[place if len(item.port) > 1 else 0]
        shown = flow.left[call] if point.side == "outputs" else flow.entered[call]
        birth = flow.births[theirs.id]
        time = birth.time if birth.frame == origin.port_frame else shown
        port = View(self._judge.port, origin.port_frame, theirs, time, self._substitutes)
        return Site(
            reference,
            port,
            point,
            item,
            self._judge.limits.noise(point),
            self._comparison,
            is_clean,
            parts[place].columns if len(point.port) > 1 and parts else None,
            parts[place].columns if len(point.reference) > 1 and parts else None,
            self._partners,
        )

    @cached_property
    def _partners(self) -> dict[Identity, Identity]:
        return dict(partner_identities(self._comparison, self._judge.calls))

    def _input_origins(self) -> Iterator[Origin]:
        """Arguments of the root that differ, as origins at the root."""
        for item in self._judge.calls:
            for point in item.inputs:
                if (
                    point in self._judge.input_points
                    and self._judge.reference.trace.calls[item.reference[0]].parent is None
                ):
                    time = self._judge.reference.flow.entered[item.reference[0]]
                    yield Origin(item.reference[0], item.port[0], point, effective(point), time, item)

    # probes

    def _probes(self) -> Iterator[Origin]:
        """Places that differ at all, one of each role, as if they were origins."""
        roles: set[tuple[str, str, str]] = set()
        count = 0
        for item in self._judge.calls:
            for point in (*item.inputs, *item.outputs):
                if not self._may_hide(point):
                    continue
                origin = self._as_origin(point, item)
                if origin is None:
                    continue
                is_of_its_own = self._has_other_weights(item)
                role = self._place(origin)
                if is_of_its_own:
                    role = (" ".join(item.pair.reference), *role[1:])
                if role in roles or count >= _MOST_PROBES:
                    continue
                roles.add(role)
                count += 1
                yield origin

    def _repeated(self, found: list[Diagnosis], frames: set[tuple[int, int]]) -> Iterator[Diagnosis]:
        """The other places of each found one's role where the same cause hits."""
        codes = {self._place(d.origin): d.causes[0].code for d in found if d.causes and d.causes[0].code != "unknown"}
        if not codes:
            return
        count = 0
        for item in self._judge.calls:
            for point in (*item.inputs, *item.outputs):
                origin = self._as_origin(point, item) if self._may_hide(point) else None
                if origin is None or count >= _MOST_REPEATED:
                    continue
                key = (origin.reference_frame, origin.port_frame)
                code = codes.get(self._place(origin))
                if code is None or key in frames:
                    continue
                count += 1
                diagnosis = self._diagnosed(origin, is_clean=False)
                hits = tuple(c for c in diagnosis.causes if c.code == code and self._stands_alone(c, origin))
                if hits:
                    frames.add(key)
                    yield replace(diagnosis, causes=hits)

    def _place(self, origin: Origin) -> tuple[str, str, str]:
        return self._role(origin), origin.point.side, origin.point.place_reference

    def _has_other_weights(self, item: PairedCall) -> bool:
        """Whether the two modules hold other values: each of them is then looked at, whatever its role."""
        owned = [
            [parameter for path in paths for parameter in side.nodes[path].parameters if not parameter.is_buffer]
            for side, paths in ((self._judge.reference, item.pair.reference), (self._judge.port, item.pair.port))
        ]
        if len(owned[0]) != len(owned[1]):
            return False
        same_dtype = [p.tensor.dtype for p in owned[0]] == [p.tensor.dtype for p in owned[1]]
        prints = [[p.fingerprint.ordered if p.fingerprint else "" for p in side] for side in owned]
        return same_dtype and prints[0] != prints[1]

    def _may_hide(self, point: Point) -> bool:
        if point.difference.basis != "values":
            return False
        unit = self._judge.limits.noise(point).unit
        error = self._judge.differences.error(point)
        return point.difference.is_comparable and error > (8 * unit if unit < _LOW_PRECISION else unit / 8)

    def _as_origin(self, point: Point, item: PairedCall) -> Origin | None:
        flow = self._judge.reference.flow
        birth = flow.births[point.reference[0].id]
        shown_by = item.reference[-1] if point.side == "outputs" else item.reference[0]
        if birth.call != shown_by or birth.frame is None:
            return None
        reference_frame = flow.module_frame(birth.frame)
        port_frame = self._judge.port.flow.module_frame(self._judge.port_frame(point, item))
        if reference_frame is None or port_frame is None:
            return None
        return Origin(reference_frame, port_frame, point, self._judge.differences.error(point), birth.time, item)

    def _role(self, origin: Origin) -> str:
        trace = self._judge.reference.trace
        return _NUMBER.sub(
            ".{i}", f"{trace.calls[origin.reference_frame].path} {'+'.join(origin.seen_by.pair.reference)}"
        )

    # which origins are one

    def _relocated(self, diagnosis: Diagnosis) -> Diagnosis:
        """Named where the likeliest cause lies."""
        cause = next(iter(diagnosis.causes), None)
        if cause is None or cause.calls == (None, None):
            return diagnosis
        origin = diagnosis.origin
        flows = self._judge.reference.flow, self._judge.port.flow
        reference = flows[0].module_frame(cause.calls[0])
        port = flows[1].module_frame(cause.calls[1])
        moved = replace(
            origin,
            reference_frame=origin.reference_frame if reference is None else reference,
            port_frame=origin.port_frame if port is None else port,
        )
        return replace(diagnosis, origin=moved)

    def _folded(self, found: list[Diagnosis]) -> list[Diagnosis]:
        kept: list[Diagnosis] = []
        for diagnosis in found:
            for place, earlier in enumerate(kept):
                if not earlier.causes and self._is_explained_by(earlier, diagnosis):
                    kept[place] = replace(earlier, causes=diagnosis.causes, also=(*earlier.also, *diagnosis.also))
                    break
                if self._is_repeated(earlier, diagnosis):
                    if not self._is_told(earlier, diagnosis.origin):
                        kept[place] = replace(earlier, also=(*earlier.also, diagnosis.origin))
                    break
            else:
                kept.append(diagnosis)
        return kept

    def _is_told(self, diagnosis: Diagnosis, origin: Origin) -> bool:
        return any(_is_same_place(known, origin) for known in (diagnosis.origin, *diagnosis.also))

    def _is_explained_by(self, one: Diagnosis, other: Diagnosis) -> bool:
        """Whether what explains the later explains the earlier too: two tensors of the same calls, or a tensor that is
        handed to the module in which its effect is found, such as a mask that the model makes for its attentions."""
        if not other.causes or _is_same_place(one.origin, other.origin):
            return bool(other.causes)
        call = self._judge.port.trace.calls[other.origin.port_frame]
        handed = {slot.tensor.id for slot in call.inputs if slot.tensor is not None}
        return one.origin.point.side == "inputs" and bool(handed & {t.id for t in one.origin.point.port})

    def _is_repeated(self, earlier: Diagnosis, later: Diagnosis) -> bool:
        """Whether `later` is the same fault again: in the same role, or of the same class of the model's own. Sums of
        modules that run in each other's place are other sums."""
        first, second = (d.causes[0].code if d.causes else None for d in (earlier, later))
        if second not in (None, first):
            is_of_exchanged = first == "call-order" and second == "residual-topology"
            return is_of_exchanged and self._frames_of(earlier.origin) == self._frames_of(later.origin)
        is_told_in_one_way = second in (None, "residual-topology")
        if is_told_in_one_way and self._seen_as(earlier.origin) == self._seen_as(later.origin):
            return True
        if self._frames_of(earlier.origin) == self._frames_of(later.origin):
            return second is None or _wording(earlier) == _wording(later)
        places = (earlier.origin, *earlier.also)
        if second is not None and any(self._are_related(place, later.origin) for place in places):
            return True
        modules = [self._module_of(d.origin) for d in (earlier, later)]
        is_of_class = second is not None and second not in _OF_ONE_WEIGHT
        if not is_of_class or modules[0] is None or modules[1] is None:
            return False
        return modules[0].qualified_name == modules[1].qualified_name

    def _are_related(self, one: Origin, other: Origin) -> bool:
        """Whether one lies in the other, or both are called by one module: q and k of one attention."""
        flow, calls = self._judge.port.flow, self._judge.port.trace.calls
        first, second = one.port_frame, other.port_frame
        if first in flow.ancestors(second) or second in flow.ancestors(first):
            return True
        parent = calls[first].parent
        return parent is not None and parent == calls[second].parent and flow.children[first] == flow.children[second]

    def _frames_of(self, origin: Origin) -> tuple[str, str]:
        """Both paths, numbers left out."""
        paths = (
            self._judge.reference.trace.calls[origin.reference_frame].path,
            self._judge.port.trace.calls[origin.port_frame].path,
        )
        return _NUMBER.sub(".{i}", paths[0]), _NUMBER.sub(".{i}", paths[1])

    def _seen_as(self, origin: Origin) -> tuple[str, str, str]:
        """The role of the pair that shows an origin, and where it shows it."""
        pair = origin.seen_by.pair
        role = _NUMBER.sub(".{i}", f"{'+'.join(pair.reference)} {'+'.join(pair.port)}")
        return role, origin.point.side, origin.point.place_reference

    def _module_of(self, origin: Origin) -> Module | None:
        port = self._judge.port
        return port.modules.get(port.trace.calls[origin.port_frame].path)


def _tried(family: Family, site: Site) -> list[Finding]:
    """What a family finds. A formula tried on a tensor with NaN or Inf gives NaN, which fits nothing: numpy need not
    warn of it."""
    with np.errstate(all="ignore"):
        return list(family.find(site))


def _wording(diagnosis: Diagnosis) -> str:
    """What the likeliest cause says, without its numbers."""
    return _DIGITS.sub("", diagnosis.causes[0].message)


def _is_same_place(one: Origin, other: Origin) -> bool:
    return (one.reference_frame, one.port_frame) == (other.reference_frame, other.port_frame)
