"""A diff as one page that stands alone: no script from elsewhere, no image, nothing to load."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from pathlib import Path

from twinlens.diffing.causes.evidence import Finding
from twinlens.diffing.diagnose import Diagnosis
from twinlens.diffing.diff import Diff, causes_or_unknown
from twinlens.diffing.report import error_in_words, source_within, worst_point

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --bad: #c62828; --soft: #8882; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; } }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
code, td.path, dd.path { font-family: ui-monospace, monospace; font-size: 12px; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
article { border: 1px solid var(--line); border-left: 4px solid var(--bad); margin: 1rem 0; padding: .8rem 1rem; }
article h2 { margin-top: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt { opacity: .7; }
dd { margin: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .5rem; text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: Canvas; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.differs td { background: var(--soft); }
tr.origin td { font-weight: 600; }
tr.origin td.word { color: var(--bad); }
svg { width: 100%; height: 120px; border-bottom: 1px solid var(--line); }
svg rect { fill: currentColor; opacity: .6; }
svg rect.origin { fill: var(--bad); opacity: 1; }
"""
_SCRIPT = """
const only = document.getElementById("only");
only.addEventListener("change", () => {
  for (const row of document.querySelectorAll("tbody tr")) {
    row.hidden = only.checked && !row.classList.contains("differs");
  }
});
"""
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
"""
_MOST_BARS = 400
_WORDS = {
    "agree": "The two traces agree",
    "differ": "The two traces differ",
    "inputs differ": "The inputs differ already",
    "not comparable": "The two traces cannot be compared",
}


def as_html(diff: Diff, root: Path) -> str:
    """The page. It is for other people's eyes: of paths it holds what they have too, those from `root` on."""
    title = f"{diff.reference.root} and {diff.port.root}"
    body = "\n".join(_body(diff, root))
    return (
        f"{_HEAD}<title>Trace diff: {escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<body>\n{body}\n<script>{_SCRIPT}</script>\n"
    )


def _body(diff: Diff, root: Path) -> Iterator[str]:
    yield f"<h1>{escape(_WORDS[diff.outcome])}</h1>\n<p>{escape(diff.reason)}.</p>"
    yield "<dl>"
    for name, side in (("reference", diff.reference), ("port", diff.port)):
        info = side.trace.info
        details = ", ".join(filter(None, (info.dtype, f"{len(side.trace.calls)} calls", info.created)))
        yield f"<dt>{name}</dt><dd>{escape(side.root)} <small>({escape(details)})</small></dd>"
    yield "</dl>"
    for diagnosis in diff.diagnoses:
        yield from _origin(diff, diagnosis, root)
    for note in diff.notes:
        yield f"<p>Note: {escape(note)}.</p>"
    yield from _depth(diff)
    yield from _table(diff)
    for name, nodes in zip(("reference", "port"), diff.unpaired(), strict=True):
        if nodes:
            listed = "".join(f"<li><code>{escape(node.path)}</code></li>" for node in nodes)
            yield f"<h2>Unpaired in the {name}</h2><ul>{listed}</ul>"


def _origin(diff: Diff, diagnosis: Diagnosis, root: Path) -> Iterator[str]:
    origin = diagnosis.origin
    reference, port = diff.reference.trace.calls[origin.reference_frame], diff.port.trace.calls[origin.port_frame]
    yield f"<article><h2><code>{escape(port.path)}</code></h2><dl>"
    for name, path, source in (
        ("reference", reference.path, source_within(root, diff.reference, origin.reference_frame)),
        ("port", port.path, source_within(root, diff.port, origin.port_frame)),
    ):
        yield f'<dt>{name}</dt><dd class="path">{escape(path)} {escape(source)}</dd>'
    yield f"<dt>error</dt><dd>{escape(error_in_words(worst_point(origin)))}</dd>"
    for cause in causes_or_unknown(diagnosis):
        yield from _cause(cause)
    if diagnosis.also:
        paths = ", ".join(diff.port.trace.calls[other.port_frame].path for other in diagnosis.also)
        yield f'<dt>also in</dt><dd class="path">{escape(paths)}</dd>'
    yield "</dl></article>"


def _cause(cause: Finding) -> Iterator[str]:
    yield f"<dt>cause</dt><dd><strong>{escape(cause.code)}</strong>: {escape(cause.message)}</dd>"
    if math.isfinite(cause.residual) and cause.code != "unknown":
        yield f"<dt>proof</dt><dd>put right, {cause.residual:.1e} is left</dd>"
    if cause.change:
        yield f"<dt>change</dt><dd>{escape(cause.change)}</dd>"


def _depth(diff: Diff) -> Iterator[str]:
    """A bar for each call: the logarithm of its error, from 1e-8 to 1."""
    calls = [(diff.verdict(item), item) for item in diff.calls]
    known = [(verdict, error) for (verdict, error), _item in calls if not math.isnan(error)][
        :: max(1, len(calls) // _MOST_BARS)
    ]
    if not known or diff.outcome == "agree":
        return
    bars = []
    for place, (verdict, error) in enumerate(known):
        height = 100 * min(1.0, max(0.02, (math.log10(max(min(error, 1.0), 1e-8)) + 8) / 8))
        kind = ' class="origin"' if verdict in ("originates here", "children agree, parent differs") else ""
        bars.append(f'<rect{kind} x="{place}" y="{100 - height:.1f}" width="0.8" height="{height:.1f}"/>')
    label = "Relative error of each call, 1e-8 to 1, in the order of execution"
    yield f'<h2>Error over depth</h2><svg viewBox="0 0 {len(known)} 100" preserveAspectRatio="none" role="img"'
    yield f' aria-label="{label}">{"".join(bars)}</svg>'


def _table(diff: Diff) -> Iterator[str]:
    yield '<h2>Calls</h2><p><label><input type="checkbox" id="only"> only what differs</label></p>'
    heads = "".join(f"<th>{name}</th>" for name in ("reference", "port", "verdict", "relative error", "paired by"))
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for item in diff.calls:
        verdict, error = diff.verdict(item)
        is_origin = verdict in ("originates here", "children agree, parent differs")
        kind = "differs origin" if is_origin else "" if verdict == "agrees" else "differs"
        shown = "" if math.isnan(error) else f"{error:.2e}"
        yield (
            f'<tr class="{kind}"><td class="path">{escape(" + ".join(item.pair.reference))}</td>'
            f'<td class="path">{escape(" + ".join(item.pair.port))}</td><td class="word">{verdict}</td>'
            f'<td class="number">{shown}</td><td>{item.pair.how}</td></tr>'
        )
    yield "</tbody></table>"
