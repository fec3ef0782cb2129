"""When a model of the library was released: by the library's documentation, else by its file's copyright."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from twinlens.source.library import Library

_DOCUMENTATION = Path("docs/source/en/model_doc")
_RELEASED = re.compile(r"released on (\d{4}-\d{2}-\d{2})")
_ADDED = re.compile(r"added to Hugging Face Transformers on (\d{4}-\d{2}-\d{2})")
_COPYRIGHT = re.compile(r"#.*\bCopyright\b\D{0,12}((?:19|20)\d{2})")
_HEADER = 2000


def copyright_date(text: str) -> str | None:
    """The first day of the first year that the file's header claims a copyright for, in ISO 8601."""
    years = [int(year) for year in _COPYRIGHT.findall(text[:_HEADER])]
    return f"{min(years)}-01-01" if years else None


def documented_dates(library: Library) -> dict[str, str]:
    """Model → the day of its release, or else of its addition to the library, as a checkout's documentation says."""
    return dict(_documented(library))


def is_later(model_date: str | None, limit: date) -> bool:
    """Whether a model of that date is newer than `limit`; an unknown date is not."""
    return model_date is not None and date.fromisoformat(model_date) > limit


def _documented(library: Library) -> Iterator[tuple[str, str]]:
    for root in library.roots:
        pages = root.parents[2] / _DOCUMENTATION if len(root.parents) > 2 else _DOCUMENTATION
        for page in sorted(pages.glob("*.md")):
            found = _date_of(page)
            if found:
                yield page.stem.replace("-", "_"), found


def _date_of(page: Path) -> str | None:
    text = page.read_text(encoding="utf-8", errors="replace")[:_HEADER]
    found = _RELEASED.search(text) or _ADDED.search(text)
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1]).isoformat()
    except ValueError:
        return None
