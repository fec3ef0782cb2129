"""Files that a scan leaves behind for the next one: read leniently, written beside and renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """What a JSON file holds; `None` where it is missing or cut short."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write_beside(path: Path, text: str) -> None:
    """Write a file in one step: a reader sees the old text or the new, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
