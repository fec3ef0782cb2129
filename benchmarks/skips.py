"""How fast test skips are scanned: `python benchmarks/skips.py CHECKOUT` (or with TWINLENS_TRANSFORMERS set).

Prints, over one transformers checkout and in one run: states by count; the time of `twinlens scan-skips` as a process,
cold and from its cache, beside upstream's regular expression over the same files; and the time from an edit to the
lenses of the edited file, for a model's test file and for the common one.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from twinlens.skips.lenses import lenses
from twinlens.skips.watch import Watch, is_checkout

REPEATS = 5
EDITS = 10
FIRST_TEST = re.compile(r"^    def test_\w+\(self\):\n", re.MULTILINE)
SCAN = "from twinlens.cli import main; main()"
REGULAR_EXPRESSION = """
import sys
from pathlib import Path
from twinlens.skips.compat import scan_as_upstream
found = scan_as_upstream(Path(sys.argv[1]))
for test in found.origins:
    found.entry(test)
"""


def main() -> None:
    """Measures and prints."""
    root = checkout()
    with tempfile.TemporaryDirectory() as scratch:
        states(root)
        processes(root, Path(scratch))
        edits(root)


def checkout() -> Path:
    """The checkout that the command line or the environment names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", default=os.environ.get("TWINLENS_TRANSFORMERS"), type=Path)
    root = parser.parse_args().checkout
    if root is None or not is_checkout(root):
        parser.error("name a transformers checkout")
    return root.resolve()


def states(root: Path) -> None:
    """How many rows of class and test are in each state."""
    scan = Watch(root).update({}).scan
    rows = Counter(str(outcome.state) for cls in scan.classes for outcome in cls.outcomes.values())
    print(f"{len(scan.models)} models, {len(scan.files)} files, {len(scan.classes)} classes, {len(scan.tests)} tests")
    print(f"{rows.total():,} rows: " + ", ".join(f"{count:,} {state}" for state, count in rows.most_common()))


def processes(root: Path, scratch: Path) -> None:
    """The scan as a process, and the regular expression as one."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")}
    scan = [sys.executable, "-c", SCAN, "scan-skips", "--root", str(root), "--output_dir", str(scratch)]

    def run(command: list[str]) -> None:
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    cold = seconds(lambda: run(scan))
    pairs = [
        (seconds(lambda: run(scan)), seconds(lambda: run([sys.executable, "-c", REGULAR_EXPRESSION, str(root)])))
        for _ in range(REPEATS)
    ]
    warm, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"scan-skips, cold        {cold:6.2f} s  ({cold / plain:.1f} × the regular expression)")
    print(f"scan-skips, from cache  {warm:6.2f} s  ({warm / plain:.1f} ×)")
    print(f"the regular expression  {plain:6.2f} s")


def edits(root: Path) -> None:
    """From a changed text to its file's lenses: what a person types into a test, and what bears on a class."""
    watch = Watch(root)
    scan = watch.update({}).scan
    longest = max(scan.files, key=lambda path: (root / path).stat().st_size)
    for path in (scan.files[len(scan.files) // 2], longest, "tests/test_modeling_common.py"):
        text = (root / path).read_text(encoding="utf-8")
        in_a_test = FIRST_TEST.sub(r'\g<0>        self.skipTest("typed")\n', text, count=1)
        a_flag = FIRST_TEST.sub(r"    has_attentions = False\n\n\g<0>", text, count=1)
        print(f"an edit of {path} ({len(text) // 1000} kB), to its lenses:")
        for what, edited in (("a line in a test", in_a_test), ("a flag of a class", a_flag)):
            times = [edit(watch, path, typed) for typed in [text, *[edited, text] * EDITS]][1:]
            print(f"  {what}: {1000 * min(times):.0f} ms, {1000 * statistics.median(times):.0f} ms in the median")
        watch.update({})


def edit(watch: Watch, path: str, text: str) -> float:
    """The seconds from a changed text to the lenses of its file."""
    return seconds(lambda: lenses(watch.update({path: text}), path))


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
