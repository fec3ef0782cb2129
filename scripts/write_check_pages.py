"""Write the page of each check beside the checks: `python scripts/write_check_pages.py`."""

from __future__ import annotations

from twinlens.checks.check import page, page_path
from twinlens.checks.rules import CHECKS


def main() -> None:
    """Write every page."""
    for check in CHECKS:
        path = page_path(check.code)
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(check), encoding="utf-8")


if __name__ == "__main__":
    main()
