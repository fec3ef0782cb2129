"""Projections: weights transposed, permuted, exchanged with a neighbour's or not loaded, and biases left out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from twinlens.diffing.causes.elsewhere import held_elsewhere
from twinlens.diffing.causes.evidence import Finding, Site, View, is_floating, nice, residual, short, tokens
from twinlens.diffing.columns import bias_of, coarser, matrix_of, output_rows, rounded_to, row_map
from twinlens.diffing.nodes import Node, Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Parameter

_SAME = 1e-3


def find(site: Site) -> Iterator[Finding]:
    pair = site.seen_by.pair
    if site.point.side != "outputs" or _is_lookup(site.reference):
        return
    if site.reference.call.path not in pair.reference or site.port.call.path not in pair.port:
        return
    reference, port = site.reference.node, site.port.node
    ours, theirs = output_rows(site.reference.side, reference), output_rows(site.port.side, port)
    if ours is not None and theirs is not None:
        if site.columns is not None:
            ours = ours[site.columns]
        if site.port_columns is not None:
            theirs = theirs[site.port_columns]
        dtype = coarser(site.reference.tensor.dtype, site.port.tensor.dtype)
        found = list(_weights(site, rounded_to(ours, dtype), rounded_to(theirs, dtype)))
        yield from found
        if any(item.code != "unknown" for item in found):
            return
    yield from _bias(site, reference, port)


def _is_lookup(view: View) -> bool:
    """Whether the module takes whole numbers: an embedding, whose rows are no outputs."""
    given = [slot.tensor for slot in view.call.inputs if slot.tensor is not None]
    return view.node.kind == "embedding" or (bool(given) and "int" in given[0].dtype)


def _name(site: Site, parameter: str) -> str:
    name = f"{short(site.port.call.path)}.{parameter}"
    if site.port_columns is None:
        return name
    first, last = int(site.port_columns.min()), int(site.port_columns.max())
    return f"the part of {name} that stands for {short(site.reference.call.path)} (rows {first} to {last})"


def _weights(site: Site, ours: Array, theirs: Array) -> Iterator[Finding]:
    name = _name(site, "weight")
    if ours.shape != theirs.shape or residual(theirs, ours) <= _SAME:
        return
    rows, columns = ours.shape
    if rows == columns and (residual(theirs, ours.T) <= _SAME or _same_rows(site, ours, theirs.T)):
        yield Finding(
            "transposed-weight",
            f"{name} is the reference's transposed",
            min(residual(theirs, ours.T), _SAME),
            f"Transpose {name} in the conversion.",
        )
        return
    yield from _untied(site)
    swapped = _owner_of(site, theirs)
    if swapped is not None:
        yield swapped
        return
    order = row_map(ours, theirs, coarser(site.reference.tensor.dtype, site.port.tensor.dtype))
    if order is not None:
        yield permuted_rows(name, order, residual(theirs, ours[order]))
        return
    elsewhere = _from_elsewhere(site)
    if elsewhere is not None:
        yield elsewhere
    elif not _is_head(site.port.side, site.port.node):
        yield _other_weights(site, name, ours, theirs)


def _same_rows(site: Site, ours: Array, theirs: Array) -> bool:
    """Of a part of a fused projection, whose rows may stand in the order of another rotation."""
    return site.columns is not None and row_map(ours, theirs, site.port.tensor.dtype) is not None


def permuted_rows(name: str, order: Array, left: float) -> Finding:
    """What a permutation of a projection's rows is called."""
    size = head_of_interleaving(order)
    if size:
        return Finding(
            "rope-layout",
            f"the rows of {name} are the reference's with each head of {size} in halves where the reference has pairs, "
            "or the other way round",
            left,
            "Permute the rows of q and k in the conversion for the rotation that the port applies, once.",
        )
    half = len(order) // 2
    if len(order) % 2 == 0 and (order == np.roll(np.arange(len(order)), half)).all():
        return Finding(
            "gate-up-swapped", f"the two halves of {name} are exchanged", left, "Exchange the halves in the conversion."
        )
    for start in (0, 1):
        evens_first = np.concatenate((np.arange(start, len(order), 2), np.arange(1 - start, len(order), 2)))
        if (order == evens_first).all() or (np.argsort(evens_first) == order).all():
            return Finding(
                "gate-up-swapped",
                f"{name} has its two parts in alternating rows on one side, one after the other on the other",
                left,
                "Deinterleave the rows in the conversion.",
            )
    moved = int(np.count_nonzero(order != np.arange(len(order))))
    return Finding(
        "fused-order",
        f"{name} has the reference's rows in another order ({moved} of {len(order)} moved; row 0 is the reference's "
        f"row {int(order[0])})",
        left,
        "Split or join the projection in the order that the reference's forward takes it apart.",
    )


def head_of_interleaving(order: Array) -> int:
    """The size of a head when `order` turns pairs into halves or back within each head; 0 otherwise."""
    count = len(order)
    for size in [size for size in range(4, count + 1, 2) if count % size == 0]:
        halves = np.arange(size).reshape(2, -1).T.reshape(-1)
        for within in (halves, np.argsort(halves)):
            if (order == (np.arange(0, count, size)[:, None] + within).reshape(-1)).all():
                return size
    return 0


def _untied(site: Site) -> Iterator[Finding]:
    reference, port = matrix_of(site.reference.node), matrix_of(site.port.node)
    if reference is None or port is None:
        return
    ours, theirs = _embedding(site.reference.side, reference), _embedding(site.port.side, port)
    if ours is None or not _equal(reference, ours):
        return
    if theirs is not None and _equal(port, theirs):
        return
    yield Finding(
        "head-not-tied",
        f"the reference's {short(site.reference.call.path)} has the embedding's weight; {short(site.port.call.path)} "
        f"has another one (standard deviation {nice(_std(port))}, the embedding's {nice(_std(ours))})",
        0.0,
        "Tie the head to the embedding, or load its weight.",
    )


def _std(parameter: Parameter) -> float:
    return parameter.tensor.statistics.std if parameter.tensor.statistics else float("nan")


def _embedding(side: Side, head: Parameter) -> Parameter | None:
    """The weight of the token embedding: of the head's shape, owned by an embedding."""
    owners = [
        node
        for node in side.nodes.values()
        if node.kind == "embedding" or side.canonical[node.path].endswith("embedding")
    ]
    for node in owners:
        weight = matrix_of(node)
        if weight is not None and weight.tensor.shape == head.tensor.shape:
            return weight
    return None


def _is_head(side: Side, node: Node) -> bool:
    weight = matrix_of(node)
    return weight is not None and node.kind != "embedding" and _embedding(side, weight) is not None


def _equal(one: Parameter, other: Parameter) -> bool:
    if one.name == other.name or one.name in other.aliases:
        return True
    if one.fingerprint is not None and other.fingerprint is not None:
        return one.fingerprint.ordered == other.fingerprint.ordered
    return False


def _owner_of(site: Site, weight: Array) -> Finding | None:
    """Another projection of the reference, called by the same module, whose weight the port's is."""
    reference = site.reference
    name = _name(site, "weight")
    dtype = coarser(reference.tensor.dtype, site.port.tensor.dtype)
    for path in reference.side.children.get(reference.node.parent, ()):
        if path == reference.call.path:
            continue
        other = output_rows(reference.side, reference.side.nodes[path])
        if other is None or other.shape != weight.shape or residual(weight, rounded_to(other, dtype)) > _SAME:
            continue
        code, change = _exchanged(reference, path)
        return Finding(
            code,
            f"{name} is the weight of the reference's {short(path)}, not of {short(reference.call.path)}",
            residual(weight, rounded_to(other, dtype)),
            change,
        )
    return None


def _exchanged(reference: View, owner: str) -> tuple[str, str]:
    """The code and the change where a projection of the port has the weight of the reference's `owner`."""
    if reference.side.nodes[owner].kind == "embedding":
        return "wrong-weights", f"Load the weight of {short(reference.call.path)}; the reference does not tie the two."
    code = "fused-order" if _feeds_attention(reference) else "gate-up-swapped"
    return code, "Exchange the two weights in the conversion."


def _feeds_attention(view: View) -> bool:
    """Whether the module that calls the projection also takes a softmax over scores."""
    parent = view.call.parent
    if parent is None:
        return False
    trace, flow = view.side.trace, view.side.flow
    return any(
        trace.calls[child].class_name in ("softmax", "scaled_dot_product_attention") for child in flow.children[parent]
    )


def _from_elsewhere(site: Site) -> Finding | None:
    """Another parameter of the reference whose values these are, such as the same one of another layer."""
    reference, port = matrix_of(site.reference.node), matrix_of(site.port.node)
    return None if reference is None or port is None else held_elsewhere(site, reference, port)


def _other_weights(site: Site, name: str, ours: Array, theirs: Array) -> Finding:
    code = "wrong-weights" if site.is_clean else "unknown"
    factor = float(np.sum(ours * theirs) / max(float(np.sum(ours * ours)), 1e-30))
    if residual(theirs, ours * factor) <= _SAME:
        return Finding(code, f"{name} is the reference's times {nice(factor)}", residual(theirs, ours * factor))
    constant = np.ptp(theirs) == 0
    if constant:
        return Finding(
            "missing-bias",
            f"{name} is {nice(float(theirs.flat[0]))} throughout: it was not loaded",
            0.0,
            f"Give {name} the reference's values: its key was missing in the checkpoint, or was renamed.",
        )
    spread = float(theirs.std())
    return Finding(
        code,
        f"{name} holds other values than the reference's (standard deviation {nice(spread)} against "
        f"{nice(float(ours.std()))}): it was not loaded, or from elsewhere",
        _left_with(site, ours),
        f"Look for the key of {name} among the missing and unexpected keys of the load.",
    )


def _left_with(site: Site, weight: Array) -> float:
    """What is left with the reference's rows in the port; `inf` where the module does more than to multiply by them."""
    given = next((slot.tensor for slot in site.port.call.inputs if slot.tensor is not None), None)
    if given is None or site.columns is not None or not (site.is_comparable and site.port.side.values.has(given)):
        return math.inf
    inputs, outputs = tokens(site.port.array(given)), tokens(site.reference.target())
    if inputs.shape[1] != weight.shape[1] or len(inputs) != len(outputs):
        return math.inf
    bias = _bias_values(site.reference, site.reference.node)
    return residual(inputs @ weight.T + (0.0 if bias is None else bias), outputs)


def _bias(site: Site, reference: Node, port: Node) -> Iterator[Finding]:
    """A bias that only the reference adds shows as one vector, the same for every token."""
    if not site.is_comparable:
        return
    whole = site.reference.target()
    ours = tokens(whole if site.columns is None else whole[..., site.columns])
    whole = site.port.target()
    theirs = tokens(whole if site.port_columns is None else whole[..., site.port_columns])
    if ours.shape != theirs.shape or len(ours) < 2:
        return
    own, other = _bias_values(site.reference, reference), _bias_values(site.port, port)
    if own is not None and site.columns is not None:
        own = own[site.columns]
    if other is not None and site.port_columns is not None:
        other = other[site.port_columns]
    gap = (ours - theirs).mean(0)
    left = residual(theirs + gap, ours)
    if left > site.fit or residual(theirs, ours) < 3 * left:
        return
    name = _name(site, "bias")
    if own is not None and own.shape == gap.shape and residual(gap - (0 if other is None else -other), own) < 1e-2:
        state = (
            "the port has none" if other is None else "the port's is zero" if not other.any() else "the port's differs"
        )
        yield Finding(
            "missing-bias",
            f"the reference adds a bias, {state}: the outputs differ by one vector for all tokens, which is that bias",
            left,
            f"Load {name}, or create the layer with a bias.",
        )
    elif other is not None and own is None and residual(-gap, other) < 1e-2:
        yield Finding(
            "missing-bias", f"{name} is added, and the reference has no bias", left, "Create the layer without a bias."
        )


def _bias_values(view: View, node: Node) -> Array | None:
    bias = bias_of(node)
    if bias is None or not is_floating(bias.tensor) or not view.side.values.has(bias.tensor):
        return None
    return np.asarray(view.side.values.array(bias.tensor), np.float64)
