"""How good and how fast the search for similar classes is.

    python benchmarks/similarity.py                          times on the installed transformers
    python benchmarks/similarity.py --split 4.53.0:5.0.0     quality on the models that a release added
    python benchmarks/similarity.py --precision 5.0.0        what flagging flags in a release
    python benchmarks/similarity.py --recall 1000000         the approximate vector index on a synthetic library

`--split OLD:NEW` takes the classes of the models that NEW added and searches them in OLD. The truth is the class of
another model that their `modular_*.py` inherits from, where OLD has it. parent@k: it or a twin of it (a class of equal
sanitised source) is among the first k answers; relative@5: or an ancestor or a descendant of it.
"""

from __future__ import annotations

import argparse

from similarity_quality import precision, split
from similarity_speed import recall, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", metavar="OLD:NEW", action="append", default=[])
    parser.add_argument("--skip-minilm", action="store_true", help="leave out MiniLM, which takes minutes")
    parser.add_argument("--precision", metavar="RELEASE")
    parser.add_argument("--every", type=int, default=1, help="with --precision: only one class in so many")
    parser.add_argument("--recall", type=int, metavar="DEFINITIONS")
    given = parser.parse_args()
    for releases in given.split:
        old, new = releases.split(":")
        split(old, new, with_minilm=not given.skip_minilm)
    if given.precision:
        precision(given.precision, given.every)
    if given.recall:
        recall(given.recall)
    if not (given.split or given.precision or given.recall):
        times()


if __name__ == "__main__":
    main()
