"""`json.dumps(value, indent=2)`, several times faster: with an indent the standard library leaves its C encoder."""

from __future__ import annotations

import json
from typing import Any

_string = json.encoder.encode_basestring_ascii
_scalar = json.JSONEncoder(allow_nan=False).encode


def pretty_json(value: Any) -> str:
    """Dicts with string keys, lists, strings, numbers, booleans and None; no floats that JSON has no word for."""
    return _pretty(value, "\n")


def _pretty(value: Any, newline: str) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = newline + "  "
        items = [f"{inner}{_string(key)}: {_pretty(item, inner)}" for key, item in value.items()]
        return f"{{{','.join(items)}{newline}}}"
    if isinstance(value, list):
        if not value:
            return "[]"
        inner = newline + "  "
        items = [inner + _pretty(item, inner) for item in value]
        return f"[{','.join(items)}{newline}]"
    return _scalar(value)
