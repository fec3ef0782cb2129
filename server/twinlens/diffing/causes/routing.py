"""Mixtures of experts: by which weights a block adds up its experts, and what each expert computes.

Every expert's output is computed from its parameters and the block's input; the weights of each token are then the
least-squares solution of output = sum of weight × expert, and are compared with the formulas that people use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twinlens.diffing.causes.activation_formulas import ACTIVATIONS
from twinlens.diffing.causes.evidence import Finding, Site, View, evenly_spaced, is_floating, nice, residual
from twinlens.diffing.causes.formulas import expit, softmax
from twinlens.diffing.nodes import Side
from twinlens.diffing.values import Array
from twinlens.tracing.record import Parameter, Tensor

_MOST_TOKENS = 48
_MOST_EXPERTS = 64
_TRIED = ("SiLU", "GELU (erf)", "GELU (tanh)", "ReLU", "quick GELU", "squared ReLU")
_PRESENT = 1e-3
"""A weight below it is of an expert that was not chosen."""

Order = Literal["gate first", "up first", "gate in even rows", "gate in odd rows"]


@dataclass(frozen=True, slots=True)
class _Experts:
    """By expert: gate and up (inner, hidden), down (hidden, inner). If `fused`, gate holds both, (2 inner, hidden)."""

    down: list[Array]
    gate: list[Array]
    up: list[Array]
    fused: bool
    owner: int | None
    """A call of the module that holds them, where it is one."""


@dataclass(frozen=True, slots=True)
class _Mixture:
    gate: Array
    up: Array
    """Of the first expert."""
    activation: str
    weights: Array
    """(tokens, experts)."""
    logits: Array | None
    residual: float
    owner: int | None


FORMULAS: Mapping[str, Callable[[Array, Array], Array]] = {
    "softmax over all experts": lambda logits, chosen: softmax(logits, -1) * chosen,
    "softmax, renormalised over the chosen": lambda logits, chosen: _renormalised(softmax(logits, -1) * chosen),
    "sigmoid": lambda logits, chosen: expit(logits) * chosen,
    "sigmoid, renormalised over the chosen": lambda logits, chosen: _renormalised(expit(logits) * chosen),
    "the same for each": lambda _logits, chosen: _renormalised(chosen * 1.0),
}
"""From router logits and which experts were chosen (both (tokens, experts)) to weights."""


def _renormalised(weights: Array) -> Array:
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30)


def find(site: Site) -> Iterator[Finding]:
    if not site.is_comparable:
        return
    mixtures = [_mixture(view, site) for view in site.views]
    if mixtures[0] is None or mixtures[1] is None:
        return
    yield from _differing(site, mixtures[0], mixtures[1])


def _differing(site: Site, ours: _Mixture, theirs: _Mixture) -> Iterator[Finding]:
    left = max(ours.residual, theirs.residual)
    name = site.port.node.class_name
    if ours.gate.shape == theirs.gate.shape and _same(theirs.gate, ours.up) and not _same(theirs.gate, ours.gate):
        yield Finding(
            "gate-up-swapped",
            f"the port's experts apply {theirs.activation} to what the reference's multiply by, and the other way "
            "round",
            left,
            "Exchange gate and up of the experts in the conversion or in the code.",
            calls=(ours.owner, theirs.owner),
        )
        return
    if ours.activation != theirs.activation:
        yield Finding(
            "activation-variant",
            f"the reference's experts apply {ours.activation}, the port's {theirs.activation}",
            left,
            f"Use {ours.activation} in the experts.",
            calls=(ours.owner, theirs.owner),
        )
        return
    rules = [_rule(mixture, 4 * site.fit) for mixture in (ours, theirs)]
    if rules[0] is not None and rules[1] is not None:
        (first, first_factor), (second, second_factor) = rules[0], rules[1]
        if first != second:
            yield Finding(
                "router-normalisation",
                f"the reference weighs experts by {first}, the port by {second}",
                left,
                f"Weigh the chosen experts by {first} in {name}.",
                calls=(_weights_call(site.reference, ours), _weights_call(site.port, theirs)),
            )
        elif abs(first_factor - second_factor) > max(1e-2, 4 * site.noise.unit) * abs(first_factor):
            yield Finding(
                "router-normalisation",
                f"the reference multiplies routing weights by {nice(first_factor)}, the port by {nice(second_factor)}",
                left,
                f"Multiply the routing weights by {nice(first_factor)} in {name}.",
                calls=(_weights_call(site.reference, ours), _weights_call(site.port, theirs)),
            )
        else:
            yield from _chosen_otherwise(site, ours, theirs, left)
    elif site.is_clean:
        yield from _by_token(site, ours, theirs, left)


def _same(one: Array, other: Array) -> bool:
    return residual(one, other) <= 1e-2


def _weights_call(view: View, mixture: _Mixture) -> int | None:
    """The call of a module inside the frame that returns the routing weights."""
    count = int(np.median((np.abs(mixture.weights) > _PRESENT).sum(-1)))
    for child in view.side.flow.inside(view.frame):
        call = view.side.trace.calls[child]
        if call.is_function:
            continue
        for slot in call.outputs:
            if slot.tensor is not None and is_floating(slot.tensor) and slot.tensor.shape[-1:] == (count,):
                return child
    return None


def _chosen_otherwise(site: Site, ours: _Mixture, theirs: _Mixture, left: float) -> Iterator[Finding]:
    counts = [int(np.median((np.abs(mixture.weights) > _PRESENT).sum(-1))) for mixture in (ours, theirs)]
    if counts[0] != counts[1]:
        yield Finding(
            "router-normalisation",
            f"the reference chooses {counts[0]} experts for a token, the port {counts[1]}",
            left,
            f"Choose {counts[0]} experts in {site.port.node.class_name}.",
        )


def _by_token(site: Site, ours: _Mixture, theirs: _Mixture, left: float) -> Iterator[Finding]:
    """Weights that follow no formula known here, but are each other's up to one factor for each token."""
    both = (np.abs(ours.weights) > _PRESENT).all(-1) | (np.abs(theirs.weights).sum(-1) > 0)
    first, second = ours.weights[both], theirs.weights[both]
    if not len(first) or residual(second, first) <= 4 * site.fit:
        return
    if residual(_renormalised(second), _renormalised(first)) <= 4 * site.fit:
        yield Finding(
            "router-normalisation",
            "routing weights are the reference's up to one factor for each token: one side renormalises them",
            left,
            f"Renormalise the routing weights as the reference does in {site.port.node.class_name}.",
        )


def _rule(mixture: _Mixture, bound: float) -> tuple[str, float] | None:
    """The formula that gives the weights, and the factor before it."""
    if mixture.logits is None:
        return None
    chosen = np.abs(mixture.weights) > _PRESENT
    best: tuple[float, str, float] | None = None
    for name, formula in FORMULAS.items():
        expected = formula(mixture.logits, chosen)
        size = float(np.sum(expected * expected))
        factor = float(np.sum(expected * mixture.weights)) / size if size else 0.0
        left = residual(expected * factor, mixture.weights)
        is_plain = abs(factor - 1) < bound
        if left <= bound and (best is None or (not is_plain, left) < (abs(best[2] - 1) >= bound, best[0])):
            best = (left, name, factor)
    return (best[1], best[2]) if best is not None else None


# what a side computes


def _mixture(view: View, site: Site) -> _Mixture | None:
    experts = _experts(view)
    given = _given(view)
    if experts is None or given is None or view.tensor.shape[-1] != given.shape[-1]:
        return None
    x, rows = _tokens(np.asarray(view.array(given), np.float64))
    y = np.asarray(view.target(), np.float64).reshape(-1, view.tensor.shape[-1])
    if len(y) != math.prod(given.shape[:-1]):
        return None
    y = y[rows]
    added = _added_besides(view, len(y), rows)
    best: _Mixture | None = None
    for order in _orders(experts):
        for activation in _TRIED:
            outputs = np.stack([_expert(x, experts, place, order, activation) for place in range(len(experts.down))], 1)
            for other in added:
                weights, left = _solved(outputs, y - other, max(5 * site.noise.unit, 1e-4))
                if left <= 4 * site.fit and (best is None or left < 0.5 * best.residual):
                    logits = _logits(view, x, rows, len(experts.down))
                    best = _Mixture(*_halves(experts, 0, order), activation, weights, logits, left, experts.owner)
    return best


def _tokens(values: Array) -> tuple[Array, Array]:
    flat = values.reshape(-1, values.shape[-1])
    rows = evenly_spaced(len(flat), _MOST_TOKENS)
    return flat[rows], rows


def _added_besides(view: View, count: int, rows: Array) -> list[Array]:
    """Nothing, or what a shared expert returned."""
    found: list[Array] = [np.zeros(1)]
    for item in view.seen:
        is_shared = item.call is not None and "shared" in view.side.trace.calls[item.call].path.lower()
        if is_shared and item.tensor.shape[-1] == view.tensor.shape[-1]:
            values = np.asarray(view.array(item.tensor), np.float64).reshape(-1, item.tensor.shape[-1])
            if len(values) > int(rows.max()):
                found.append(values[rows])
    del count
    return found


def _solved(outputs: Array, y: Array, least: float) -> tuple[Array, float]:
    """(tokens, experts) weights and what they leave; 0 for experts that make up less than `least` of an output."""
    weights = np.zeros(outputs.shape[:2])
    for place in range(len(y)):
        matrix = outputs[place].T
        solution = np.linalg.lstsq(matrix, y[place], rcond=1e-10)[0]
        present = np.abs(solution) * np.linalg.norm(matrix, axis=0) > least * np.linalg.norm(y[place])
        if present.any():
            weights[place, present] = np.linalg.lstsq(matrix[:, present], y[place], rcond=1e-10)[0]
    return weights, residual(np.einsum("te,teh->th", weights, outputs), y)


def _orders(experts: _Experts) -> tuple[Order, ...]:
    if experts.fused:
        return ("gate first", "up first", "gate in even rows", "gate in odd rows")
    return ("gate first", "up first")


def _expert(x: Array, experts: _Experts, place: int, order: Order, activation: str) -> Array:
    gate, up = _halves(experts, place, order)
    return (ACTIVATIONS[activation](x @ gate.T) * (x @ up.T)) @ experts.down[place].T


def _halves(experts: _Experts, place: int, order: Order) -> tuple[Array, Array]:
    """An expert's gate and up matrices, each (inner, hidden)."""
    if not experts.fused:
        gate, up = experts.gate[place], experts.up[place]
        return (up, gate) if order == "up first" else (gate, up)
    fused = experts.gate[place]
    half = len(fused) // 2
    return {
        "gate first": (fused[:half], fused[half:]),
        "up first": (fused[half:], fused[:half]),
        "gate in even rows": (fused[::2], fused[1::2]),
        "gate in odd rows": (fused[1::2], fused[::2]),
    }[order]


def _given(view: View) -> Tensor | None:
    return next(
        (
            s.tensor
            for s in view.call.inputs
            if s.tensor is not None and is_floating(s.tensor) and view.side.values.has(s.tensor)
        ),
        None,
    )


def _logits(view: View, x: Array, rows: Array, count: int) -> Array | None:
    """Router logits: a recorded tensor, one column for each expert, or the input times a matrix of that many rows."""
    for child in view.side.flow.inside(view.frame):
        for slot in view.side.trace.calls[child].outputs:
            tensor = slot.tensor
            if (
                tensor is None
                or not is_floating(tensor)
                or tensor.shape[-1:] != (count,)
                or not view.side.values.has(tensor)
            ):
                continue
            if view.side.trace.calls[child].is_function:
                continue
            values = np.asarray(view.array(tensor), np.float64).reshape(-1, count)
            is_probability = abs(float(values.sum(-1).mean()) - 1) < 1e-2 and float(values.min()) >= 0
            if len(values) > int(rows.max()) and not is_probability:
                return values[rows]
    for _path, parameter in _parameters_inside(view.side, view.call.path):
        shape = parameter.tensor.shape
        if shape == (count, x.shape[1]) and view.side.values.has(parameter.tensor):
            return x @ np.asarray(view.side.values.array(parameter.tensor), np.float64).T
    return None


def _parameters_inside(side: Side, path: str) -> Iterator[tuple[str, Parameter]]:
    prefix = f"{path}."
    for node in side.nodes.values():
        if node.path == path or node.path.startswith(prefix):
            for parameter in node.parameters:
                if not parameter.is_buffer:
                    yield node.path, parameter


def _experts(view: View) -> _Experts | None:
    return _stacked(view) or _separate(view)


def _stacked(view: View) -> _Experts | None:
    """Parameters of three dimensions, one expert after the other."""
    hidden = view.tensor.shape[-1]
    found = [(p, q) for p, q in _parameters_inside(view.side, view.call.path) if len(q.tensor.shape) == 3]
    if len(found) not in (2, 3) or not all(view.side.values.has(q.tensor) for _p, q in found):
        return None
    count = found[0][1].tensor.shape[0]
    if count > _MOST_EXPERTS or any(q.tensor.shape[0] != count for _p, q in found):
        return None
    arrays = [np.asarray(view.side.values.array(q.tensor), np.float64) for _p, q in found]
    names = [q.name.rpartition(".")[2] for _p, q in found]
    owner = _call_inside(view, found[0][0])
    if len(found) == 2:
        down = next((place for place, name in enumerate(names) if "down" in name or "w2" in name or "out" in name), 1)
        wide, narrow = arrays[1 - down], arrays[down]
        wide = wide if wide.shape[2] == hidden else wide.swapaxes(1, 2)
        narrow = narrow if narrow.shape[1] == hidden and narrow.shape[2] * 2 == wide.shape[1] else narrow.swapaxes(1, 2)
        if wide.shape[2] != hidden or narrow.shape[1] != hidden or 2 * narrow.shape[2] != wide.shape[1]:
            return None
        return _Experts(list(narrow), list(wide), [], True, owner)
    down = next((place for place, name in enumerate(names) if "down" in name or "w2" in name), 1)
    others = [
        array if array.shape[2] == hidden else array.swapaxes(1, 2)
        for place, array in enumerate(arrays)
        if place != down
    ]
    narrow = arrays[down] if arrays[down].shape[1] == hidden else arrays[down].swapaxes(1, 2)
    if any(array.shape[2] != hidden for array in others):
        return None
    return _Experts(list(narrow), list(others[0]), list(others[1]), False, owner)


def _call_inside(view: View, path: str) -> int | None:
    calls = view.side.nodes[path].calls
    return next((call for call in calls if call == view.frame or view.frame in view.side.flow.ancestors(call)), None)


def _separate(view: View) -> _Experts | None:
    """Modules numbered from 0, each with three matrices."""
    groups: dict[int, list[tuple[str, Array]]] = {}
    prefix = f"{view.call.path}."
    for parameter in view.side.trace.parameters:
        if (
            parameter.name.startswith(prefix)
            and len(parameter.tensor.shape) == 2
            and view.side.values.has(parameter.tensor)
        ):
            steps = parameter.name.removeprefix(prefix).split(".")[:-1]
            name = steps[-1] if steps else ""
            number = next((int(step) for step in steps if step.isdigit()), None)
            if number is not None:
                values = np.asarray(view.side.values.array(parameter.tensor), np.float64)
                groups.setdefault(number, []).append((name, values))
    if not 2 <= len(groups) <= _MOST_EXPERTS or sorted(groups) != list(range(len(groups))):
        return None
    made = [_gated_expert(groups[number], view.tensor.shape[-1]) for number in range(len(groups))]
    known = [item for item in made if item is not None]
    if len(known) < len(made):
        return None
    return _Experts([item[2] for item in known], [item[0] for item in known], [item[1] for item in known], False, None)


def _gated_expert(matrices: list[tuple[str, Array]], hidden: int) -> tuple[Array, Array, Array] | None:
    """(one of gate and up, the other, down) of three matrices; names decide where all are square."""
    if len(matrices) != 3:
        return None
    back = [item for item in matrices if item[1].shape[0] == hidden and item[1].shape[1] != hidden]
    if not back:
        back = [item for item in matrices if item[0] in ("w2", "down_proj", "fc2", "c_proj", "wo")]
    wide = [values for name, values in matrices if name not in [item[0] for item in back]]
    if len(back) != 1 or len(wide) != 2 or any(values.shape[1] != hidden for values in wide):
        return None
    return wide[0], wide[1], back[0][1]
