"""What the process that traces is asked, and what it answers as it goes. Standard library only.

The process is `python -m twinlens.tracing.run`. It reads `Job.to_json()`, one line, from its standard input, which
stays open: when that ends, so does the process. Its standard output carries one frame a line; what the model prints
goes to standard error.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Job:
    """`target` as `twinlens trace` takes it, relative to `root`; `folder` is where the trace goes ("" for a new one in
    `.twinlens/traces` of `root`). `seed`, `dtype` and `device` are the recipe's where they are None or empty."""

    target: str
    root: str
    folder: str = ""
    seed: int | None = None
    dtype: str = ""
    device: str = ""
    stats_only: bool = False
    only: tuple[str, ...] = ()
    max_bytes: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        fields: dict[str, Any] = json.loads(text)
        fields["only"] = tuple(fields["only"])
        return Job(**fields)


@dataclass(frozen=True, slots=True)
class Progress:
    """`stage` is `preparing` (`detail` tells what is done) or `running` (`detail` is the module path that was entered,
    `count` how many calls there were)."""

    kind: ClassVar[str] = "progress"
    stage: str
    detail: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The forward returned or raised; `folder` holds its trace. `error` is then `Type: message`, else empty."""

    kind: ClassVar[str] = "finished"
    folder: str
    error: str = ""
    traceback: str = ""


Reason = Literal["mistake", "no recipe", "raised", "no torch"]


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no trace. `reason`: `mistake` of the user's, `no recipe` for the class, `raised` by the user's code
    before the forward (then with `traceback`), or `no torch` in the interpreter.
    """

    kind: ClassVar[str] = "failed"
    reason: Reason
    message: str
    traceback: str = ""


Frame = Progress | Finished | Failed
Outcome = Finished | Failed


def to_line(frame: Frame) -> str:
    return json.dumps({"kind": frame.kind, **asdict(frame)})


def from_line(line: str) -> Frame:
    """Raises `ValueError` for what is no frame."""
    fields: dict[str, Any] = json.loads(line)
    for cls in (Progress, Finished, Failed):
        if fields.get("kind") == cls.kind:
            return cls(**{name: value for name, value in fields.items() if name != "kind"})
    raise ValueError(f"not a frame: {line[:80]}")
