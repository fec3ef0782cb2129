"""Calls: a module of one side that the other never calls, calls once more, or calls in another's place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinlens.diffing.causes.evidence import Finding, Site, View, is_floating, short
from twinlens.diffing.compare import relative_error
from twinlens.diffing.never_called import caller_of, partner_of
from twinlens.diffing.shapes import conformed
from twinlens.tracing.record import Tensor

_MOST_SKIPPED = 64
_MOST_TRIED = 400


@dataclass(frozen=True, slots=True)
class _Detour:
    """Calls of one side without a partner, the first first, that make its tensor of `given`."""

    calls: tuple[int, ...]
    given: Tensor


def find(site: Site) -> Iterator[Finding]:
    if not site.is_clean or not site.is_comparable:
        return
    ours, theirs = (list(_detours(site, view)) for view in site.views)
    skipped = next((item for item in ours if _is_same(site, item.given, site.port.tensor)), None)
    if skipped is not None:
        yield _skipped(site, skipped)
        return
    added = next((item for item in theirs if _is_same(site, site.reference.tensor, item.given)), None)
    if added is not None:
        yield _added(site, added)
        return
    for one in ours[:1]:
        for other in theirs[:1]:
            if _is_same(site, one.given, other.given):
                yield _replaced(site, one, other)
                return
    yield from _in_the_place_of_another(site)


def _detours(site: Site, view: View) -> Iterator[_Detour]:
    """What the side's tensor was before calls that the other side lacks, by how many they are."""
    open_ones = [_Detour((), view.tensor)]
    tried = 0
    while open_ones and tried < _MOST_SKIPPED:
        tried += 1
        detour = open_ones.pop(0)
        for call in _makers(site, view, detour.given):
            given = _given(view, call, detour.given)
            if given is not None and call not in detour.calls:
                longer = _Detour((call, *detour.calls), given)
                open_ones.append(longer)
                yield longer


def _makers(site: Site, view: View, tensor: Tensor) -> list[int]:
    """The calls without a partner that returned the tensor as it was made, the outermost first."""
    flow = view.side.flow
    birth = flow.births[tensor.id]
    found: list[int] = []
    if birth.side != "outputs":
        return found
    for call in (birth.call, *flow.ancestors(birth.call)):
        returned = {slot.tensor.id for slot in flow.call(call).outputs if slot.tensor is not None}
        if tensor.id not in returned:
            break
        is_activation = view.side.node_of(call).kind == "activation"  # has a family of its own
        if not flow.call(call).is_function and not is_activation and not _has_partner(site, view, call):
            found.insert(0, call)
    return found


def _has_partner(site: Site, view: View, call: int) -> bool:
    is_reference = view.side is site.reference.side
    alignment = site.comparison.alignment
    record = view.side.trace.calls[call]
    pair = (alignment.by_reference if is_reference else alignment.by_port).get(record.path)
    if pair is None:
        return False
    other = site.port.side if is_reference else site.reference.side
    known = [
        other.trace.calls[i]
        for path in (pair.port if is_reference else pair.reference)
        for i in other.nodes[path].calls
    ]
    return any((item.forward, item.number) == (record.forward, record.number) for item in known)


def _given(view: View, call: int, like: Tensor) -> Tensor | None:
    """The first floating input of a call that may have become `like`."""
    for slot in view.side.flow.call(call).inputs:
        tensor = slot.tensor
        if tensor is not None and is_floating(tensor) and view.side.values.has(tensor):
            return tensor if tensor.shape[:-1] == like.shape[:-1] or tensor.shape == like.shape else None
    return None


def _is_same(site: Site, reference: Tensor, port: Tensor) -> bool:
    both = conformed(site.reference.side.values.array(reference), site.port.side.values.array(port))
    return both is not None and relative_error(both[1], both[0]) <= site.noise.floor


# what is said


def _skipped(site: Site, detour: _Detour) -> Finding:
    first = site.reference.side.trace.calls[detour.calls[0]]
    names = _names(site.reference, detour)
    partner = partner_of(site.comparison, first.path)
    port = site.port.side
    count = len(port.nodes[partner].calls) if partner is not None and partner in port.nodes else 0
    if partner is None:
        state = "has no partner in the port"
    elif count:
        state = f"is called {count} times in the port ({short(partner)}), not here"
    else:
        state = f"never runs in the port, where {short(partner)} is its partner"
    return Finding(
        "not-called",
        f"{names} of the reference {state}: what goes into it there is what the port goes on with",
        0.0,
        f"Call {short(partner) if partner else names} {_seen_at(site)}.",
        calls=(detour.calls[0], caller_of(port, partner) if partner else None),
    )


def _added(site: Site, detour: _Detour) -> Finding:
    port = site.port.side
    first = port.trace.calls[detour.calls[0]]
    names = _names(site.port, detour)
    count = len(port.nodes[first.path].calls)
    times = f" ({count} calls of it)" if count > 1 else ""
    return Finding(
        "extra-call",
        f"the port calls {names} where the reference calls nothing{times}: what goes into it is what the reference "
        "goes on with",
        0.0,
        f"Leave out the call of {names} {_seen_at(site)}.",
        calls=(None, detour.calls[0]),
    )


def _replaced(site: Site, ours: _Detour, theirs: _Detour) -> Finding:
    names = _names(site.reference, ours), _names(site.port, theirs)
    first = site.reference.side.trace.calls[ours.calls[0]]
    partner = partner_of(site.comparison, first.path)
    port = site.port.side
    is_idle = partner is not None and (partner not in port.nodes or not port.nodes[partner].calls)
    never = f", and {short(partner)} never runs" if partner is not None and is_idle else ""
    return Finding(
        "not-called",
        f"where the reference calls {names[0]}, the port calls {names[1]} on the same values{never}",
        0.0,
        f"Call {short(partner) if partner else names[0]} there.",
        calls=(ours.calls[0], caller_of(port, partner) if partner and is_idle else None),
    )


def _names(view: View, detour: _Detour) -> str:
    names = [short(view.side.trace.calls[call].path) for call in detour.calls]
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _seen_at(site: Site) -> str:
    name = short(site.seen_by.pair.port[0])
    return f"before {name}" if site.point.side == "inputs" else f"in {name}"


# another module of the same class


def _in_the_place_of_another(site: Site) -> Iterator[Finding]:
    """The port gives another module of the class what the reference gives to this one."""
    if site.point.side != "inputs":
        return
    ours, theirs = site.seen_by.reference[0], site.seen_by.port[0]
    port, alignment = site.port.side, site.comparison.alignment
    here = port.trace.calls[theirs]
    for call in port.trace.calls[:_MOST_TRIED]:
        if call.class_name != here.class_name or call.path == here.path or call.is_function:
            continue
        own = alignment.reference_of(call.path)
        given = _given(site.port, call.index, site.port.tensor)
        if own is None or given is None or not _is_same(site, site.reference.tensor, given):
            continue
        if own == site.reference.side.trace.calls[ours].path or _goes_to(site, own):
            continue
        path = site.reference.side.trace.calls[ours].path
        yield Finding(
            "call-order",
            f"what the reference gives to {short(path)}, the port gives to {short(call.path)}, which holds the weights "
            f"of the reference's {short(own)}: the two run in another order, or their weights are exchanged",
            0.0,
            f"Run {short(here.path)} there, or give it the weights of {short(own)} in the conversion.",
            calls=(site.reference.side.trace.calls[ours].parent, here.parent),
        )
        return


def _goes_to(site: Site, path: str) -> bool:
    """Whether the reference gives its tensor to the module `path` as well: one input of several modules."""
    side = site.reference.side
    return any(
        slot.tensor is not None and slot.tensor.id == site.reference.tensor.id
        for call in side.nodes[path].calls
        for slot in side.trace.calls[call].inputs
    )
