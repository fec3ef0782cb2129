"""The user's own pairs: `.twinlens/align.toml`.

    [[pair]]
    reference = "layers.{i}.attention.wq"
    port = "model.layers.{i}.self_attn.q_proj"

    [[pair]]
    reference = ["layers.{i}.attention.wq", "layers.{i}.attention.wk", "layers.{i}.attention.wv"]
    port = "model.layers.{i}.self_attn.qkv_proj"
    op = "concat"

    [[apart]]
    reference = "layers.{i}.attention"

Paths count from the root class, which may be left out; `{i}`, `{j}` … stand for one number, the same on both sides.
`op` says what makes the port's output of the reference's: `concat` (also for one reference path split over several
port paths) or `interleave` along `dim`; `permute = [0, 2, 1]`, `transpose = [1, 2]` and `reshape = [-1, 64]` are
applied after it. `apart` modules are paired with nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlens.tracing.record import TraceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # ty: ignore[import-not-found]

MAP_FILE = ".twinlens/align.toml"
_OPERATIONS = ("concat", "interleave")
_FIELDS = {"reference", "port", "op", "dim", "permute", "transpose", "reshape"}
_PLACEHOLDER = re.compile(r"\\\{(\w+)\\\}")


@dataclass(frozen=True, slots=True)
class Transform:
    """What makes the port's tensor of the reference's. Nothing by default."""

    op: str = "concat"
    dim: int = -1
    permute: tuple[int, ...] = ()
    transpose: tuple[int, ...] = ()
    reshape: tuple[int, ...] = ()

    @property
    def is_identity(self) -> bool:
        return self is IDENTITY or self == IDENTITY


IDENTITY = Transform()


@dataclass(frozen=True, slots=True)
class MapPair:
    """Patterns of paths, without root classes."""

    reference: tuple[str, ...]
    port: tuple[str, ...]
    transform: Transform = IDENTITY


@dataclass(frozen=True, slots=True)
class MapFile:
    pairs: tuple[MapPair, ...] = ()
    apart_reference: tuple[str, ...] = ()
    apart_port: tuple[str, ...] = ()


EMPTY = MapFile()


def read_map(path: Path) -> MapFile:
    """Raises `TraceError` with one sentence that names the file where it does not parse or says what has no meaning."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); name an existing map file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} is not TOML ({error}); mend it or remove it.") from error
    unknown = set(raw) - {"pair", "apart"}
    if unknown:
        raise TraceError(f"{path}: unknown table {sorted(unknown)[0]!r}; it takes [[pair]] and [[apart]].")
    pairs = tuple(_pair(path, fields) for fields in _tables(path, raw, "pair"))
    apart = _tables(path, raw, "apart")
    for fields in apart:
        if not fields.keys() & {"reference", "port"} or fields.keys() - {"reference", "port"}:
            raise TraceError(f"{path}: an [[apart]] has a reference or a port path, and nothing else.")
    return MapFile(
        pairs,
        tuple(str(fields["reference"]) for fields in apart if "reference" in fields),
        tuple(str(fields["port"]) for fields in apart if "port" in fields),
    )


def _tables(path: Path, raw: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tables = raw.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise TraceError(f"{path}: write each entry of {name} as a table of its own, [[{name}]].")
    return tables


def _pair(path: Path, fields: dict[str, Any]) -> MapPair:
    unknown = fields.keys() - _FIELDS
    if unknown:
        raise TraceError(
            f"{path}: unknown key {sorted(unknown)[0]!r} in a [[pair]]; it takes {', '.join(sorted(_FIELDS))}."
        )
    reference, port = _paths(path, fields, "reference"), _paths(path, fields, "port")
    if len(reference) > 1 and len(port) > 1:
        raise TraceError(f"{path}: a [[pair]] joins several paths on one side only: {fields['reference']}.")
    op = fields.get("op", "concat")
    if op not in _OPERATIONS:
        raise TraceError(f"{path}: op {op!r} is none of {', '.join(_OPERATIONS)}.")
    return MapPair(
        reference,
        port,
        Transform(
            op,
            int(fields.get("dim", -1)),
            *(_numbers(path, fields, name) for name in ("permute", "transpose", "reshape")),
        ),
    )


def _paths(path: Path, fields: dict[str, Any], side: str) -> tuple[str, ...]:
    value = fields.get(side)
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not paths or not all(isinstance(item, str) and item for item in paths):
        raise TraceError(f"{path}: a [[pair]] needs a {side}: a path, or a list of paths.")
    return tuple(paths)


def _numbers(path: Path, fields: dict[str, Any], name: str) -> tuple[int, ...]:
    value = fields.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise TraceError(f"{path}: {name} is a list of whole numbers.")
    return tuple(value)


def pattern_of(path: str) -> re.Pattern[str]:
    """Matches the paths that `path` with its `{i}` stands for, with or without a root class before it."""
    seen: set[str] = set()

    def group(found: re.Match[str]) -> str:
        name = found[1]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return rf"(?P<{name}>\d+)"

    return re.compile(rf"(?:[^.]+\.)?{_PLACEHOLDER.sub(group, re.escape(path))}|{re.escape(path)}")


def filled(path: str, numbers: dict[str, str]) -> str:
    for name, number in numbers.items():
        path = path.replace(f"{{{name}}}", number)
    return path


def write_map(path: Path, mapping: MapFile) -> None:
    """Write `mapping` beside `path` and put it in its place. Raises `TraceError`."""
    lines = ["# Pairs of modules for Twinlens' trace diff. `{i}` stands for one number, the same on both sides.", ""]
    for pair in mapping.pairs:
        lines += ["[[pair]]", f"reference = {_toml(pair.reference)}", f"port = {_toml(pair.port)}"]
        transform = pair.transform
        if len(pair.reference) + len(pair.port) > 2:
            lines.append(f"op = {json.dumps(transform.op)}")
        if transform.dim != -1:
            lines.append(f"dim = {transform.dim}")
        lines += [
            f"{name} = {list(value)}"
            for name in ("permute", "transpose", "reshape")
            if (value := getattr(transform, name))
        ]
        lines.append("")
    for side, paths in (("reference", mapping.apart_reference), ("port", mapping.apart_port)):
        for name in paths:
            lines += ["[[apart]]", f"{side} = {json.dumps(name, ensure_ascii=False)}", ""]
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text("\n".join(lines), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise TraceError(f"{path} cannot be written ({error.strerror}); check the folder's permissions.") from error


def _toml(paths: tuple[str, ...]) -> str:
    """A JSON string is a TOML string, a JSON list of strings a TOML array."""
    return json.dumps(paths[0] if len(paths) == 1 else list(paths), ensure_ascii=False)
