"""Fit the weights of the ranking on one release of transformers.

    python benchmarks/fit_rank.py --release 4.53.0

For each model that has a modular file, its classes are ranked in the library without that model and without the models
that descend from it; the right answer is the class that the modular file inherits from. A weight vector maximises the
likelihood of the right answers under a softmax over the candidates (a conditional logit) with a small ridge; the first
score's weights come first, and with them the second score's `kin`. A logistic curve over all candidates then turns the
second sum into a chance.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from releases import index_of, modular_parents, queries_of
from scipy.optimize import minimize
from twinlens.similarity.answers import QueryFile
from twinlens.similarity.catalogue import Catalogue
from twinlens.similarity.family_ranker import families_of
from twinlens.similarity.features import features_of
from twinlens.similarity.rank import FIRST, SECOND, WEIGHTS_FILE, Candidates, Question, Ranker, Weights

RIDGE = 2.0
START = {"trigrams": 1.0, "coverage": 1.0, "lines": 1.0, "children": 0.05}
"""Good enough to bring the right answer among the candidates."""


@dataclass(frozen=True, slots=True)
class Case:
    """One class with a known parent: its features, float64 (candidates, features), and which candidates are right."""

    features: np.ndarray
    right: np.ndarray


@dataclass(frozen=True, slots=True)
class Left:
    """A model that is left out of the library with its descendants, its files, and its classes' right families."""

    out: frozenset[str]
    files: tuple[QueryFile, ...]
    right: Mapping[str, frozenset[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.53.0")
    release = parser.parse_args().release
    index, _ = index_of(release)
    assert index.features is not None
    catalogue = Catalogue(index.entries, index.ties, {}, ())
    families = families_of(index.features, catalogue)
    lefts = list(left_out(catalogue, modular_parents(index), queries_of(index)))

    def ranker(first: np.ndarray) -> Ranker:
        assert index.features is not None
        return Ranker(index.features, families, Weights(first, np.zeros(len(SECOND)), 1.0, 0.0))

    start = np.array([START.get(name, 0.0) for name in FIRST])
    cases = list(first_cases(ranker(start), lefts))
    first = conditional_logit(cases)
    cases = list(second_cases(ranker(first), lefts))
    second = conditional_logit(cases)
    scale, offset = chance(cases, second)
    written = {
        "command": f"python benchmarks/fit_rank.py --release {release}",
        "fitted_on": f"{len(cases)} classes of {len(lefts)} models of transformers {release}",
        "first": named(FIRST, first),
        "second": named(SECOND, second),
        "scale": round(scale, 4),
        "offset": round(offset, 4),
    }
    WEIGHTS_FILE.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    print(WEIGHTS_FILE.read_text(encoding="utf-8"))


def left_out(
    catalogue: Catalogue, parents: Mapping[str, tuple[str, ...]], files: Mapping[str, QueryFile]
) -> Iterator[Left]:
    entries = {entry.identifier: (row, entry) for row, entry in enumerate(catalogue.entries)}
    descendants: dict[str, set[str]] = defaultdict(set)
    right: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for child, found in parents.items():
        model = entries[child][1].model
        for parent in found:
            descendants[entries[parent][1].model].add(model)
            right[model][child].add(parent)
    for model, classes in sorted(right.items()):
        out = reach(model, descendants)
        answers = {
            child.partition(":")[2]: frozenset(catalogue.family_of[entries[parent][0]] for parent in found)
            for child, found in classes.items()
            if not {entries[parent][1].model for parent in found} & out
        }
        if answers:
            yield Left(out, tuple(file for file in files.values() if file.model == model), answers)


def reach(start: str, onward: Mapping[str, set[str]]) -> frozenset[str]:
    seen, queue = {start}, [start]
    while queue:
        fresh = onward.get(queue.pop(), set()) - seen
        seen |= fresh
        queue += fresh
    return frozenset(seen)


def first_cases(ranker: Ranker, lefts: Sequence[Left]) -> Iterator[Case]:
    for left in lefts:
        for file in left.files:
            for definition in file.definitions:
                if definition.name in left.right:
                    question = Question(features_of(definition.sanitised), definition.kind == "class", file.model)
                    found = ranker.candidates(question, left.out)
                    yield from case(found.features, found, left.right[definition.name])


def second_cases(ranker: Ranker, lefts: Sequence[Left]) -> Iterator[Case]:
    for left in lefts:
        for file in left.files:
            found = {
                definition.name: ranker.candidates(
                    Question(features_of(definition.sanitised), definition.kind == "class", file.model), left.out
                )
                for definition in file.definitions
            }
            for name in found.keys() & left.right.keys():
                others = [candidates.belief for other, candidates in found.items() if other != name]
                kin = np.mean(others, axis=0) if others else None
                yield from case(ranker.evidence(found[name], kin), found[name], left.right[name])


def case(features: np.ndarray, found: Candidates, right: frozenset[int]) -> Iterator[Case]:
    is_right = np.isin(found.families, list(right))
    if is_right.any():
        yield Case(features, is_right)


def conditional_logit(cases: Sequence[Case]) -> np.ndarray:
    """The weights that maximise Σ log Σ_right softmax(features · w) − RIDGE/2 · |w·σ|²."""
    spread = np.concatenate([case.features for case in cases]).std(axis=0) + 1e-9
    scaled = [(case.features / spread, case.right) for case in cases]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, gradient = RIDGE * (weights @ weights) / 2, RIDGE * weights
        for features, right in scaled:
            sums = features @ weights
            chances = np.exp(sums - sums.max())
            chances /= chances.sum()
            hit = chances[right].sum()
            total -= np.log(hit)
            gradient = gradient - features.T @ (np.where(right, chances / hit, 0) - chances)
        return total, gradient

    return minimised(loss, len(spread)) / spread


def chance(cases: Sequence[Case], weights: np.ndarray) -> tuple[float, float]:
    """`scale` and `offset` of the logistic curve from a candidate's sum to its chance of being right."""
    sums = np.concatenate([case.features @ weights for case in cases])
    right = np.concatenate([case.right for case in cases]).astype(np.float64)
    middle, spread = sums.mean(), sums.std()
    standard = np.column_stack([(sums - middle) / spread, np.ones(len(sums))])

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        at = standard @ line
        return float((np.logaddexp(0, at) - right * at).sum()), standard.T @ (1 / (1 + np.exp(-at)) - right)

    slope, height = minimised(loss, 2)
    return float(slope / spread), float(height - slope * middle / spread)


def minimised(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], size: int) -> np.ndarray:
    return minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B").x


def named(names: Sequence[str], weights: np.ndarray) -> dict[str, float]:
    return {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True)}


if __name__ == "__main__":
    main()
