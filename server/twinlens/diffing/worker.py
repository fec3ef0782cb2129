"""The process that holds a diff for the editor: `python -m twinlens.diffing.worker`, in an interpreter with numpy.

It reads one JSON object a line, `{"id": 1, "method": "open", "params": {…}}`, and writes one for each:
`{"id": 1, "result": …}` or `{"id": 1, "error": "one sentence"}`. Standard output is the protocol's alone.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from twinlens.diffing.diff import Diff
    from twinlens.diffing.rows import Row


class Session:
    """One diff that is open in the editor."""

    def __init__(self) -> None:
        self._diff: Diff | None = None
        self._rows: list[Row] = []

    def open(self, params: dict[str, Any]) -> dict[str, Any]:
        """Compare two traces and write the table to `params["table"]`."""
        from twinlens.diffing.details import plot_of
        from twinlens.diffing.diff import Options, diff_folders
        from twinlens.diffing.mapedit import load_map
        from twinlens.diffing.report import side_as_json
        from twinlens.diffing.rows import rows_of, table_as_json

        options = Options(rtol=params["rtol"], mapping=load_map(Path(params["map"])))
        replay = params.get("replay")
        if replay:
            from twinlens.diffing.replay import replay as replayed

            diff = replayed(
                Path(params["reference"]),
                Path(params["port"]),
                (replay[0], replay[1]),
                options,
                interpreter=sys.executable,
                root=Path(params["root"]),
            )
        else:
            diff = diff_folders(Path(params["reference"]), Path(params["port"]), options)
        self._diff, self._rows = diff, rows_of(diff)
        table = {
            "outcome": diff.outcome,
            "reason": diff.reason,
            "notes": list(diff.notes),
            "reference": side_as_json(diff.reference),
            "port": side_as_json(diff.port),
            "plot": plot_of(self._rows, 400),
            **table_as_json(diff, self._rows),
        }
        _write(Path(params["table"]), json.dumps(table, ensure_ascii=False, allow_nan=False))
        return {"outcome": diff.outcome, "reason": diff.reason, "marks": self._marks()}

    def details(self, params: dict[str, Any]) -> dict[str, Any]:
        from twinlens.diffing.details import details_of

        diff, row = self._row(params["row"])
        return details_of(diff, row)

    def pair(self, params: dict[str, Any]) -> dict[str, Any]:
        from twinlens.diffing.mapedit import pair

        pair(Path(params["map"]), params["reference"], params["port"])
        return {}

    def unpair(self, params: dict[str, Any]) -> dict[str, Any]:
        from twinlens.diffing.mapedit import unpair

        unpair(Path(params["map"]), params["reference"], params["port"])
        return {}

    def summaries(self, params: dict[str, Any]) -> dict[str, Any]:
        from twinlens.diffing.summaries import write_summaries

        diff = self._opened()
        reference, port = write_summaries(diff, self._rows, Path(params["folder"]))
        return {"reference": str(reference), "port": str(port)}

    def _opened(self) -> Diff:
        from twinlens.tracing.record import TraceError

        if self._diff is None:
            raise TraceError("No traces are open; choose Compare Traces again.")
        return self._diff

    def _row(self, place: int) -> tuple[Diff, Row]:
        from twinlens.tracing.record import TraceError

        diff = self._opened()
        if not 0 <= place < len(self._rows):
            raise TraceError("This row is of another diff; choose Compare Traces again.")
        return diff, self._rows[place]

    def _marks(self) -> list[dict[str, Any]]:
        """Where the port's source is to be marked, and with what."""
        from twinlens.diffing.diff import causes_or_unknown

        diff = self._opened()
        marks: list[dict[str, Any]] = []
        for diagnosis in diff.diagnoses:
            call = diff.port.trace.calls[diagnosis.origin.port_frame]
            for index in (diagnosis.origin.port_frame, *diff.port.flow.ancestors(diagnosis.origin.port_frame)):
                module = diff.port.modules.get(diff.port.trace.calls[index].path)
                if module is not None and module.source is not None and not module.qualified_name.startswith("torch."):
                    cause = causes_or_unknown(diagnosis)[0]
                    marks.append(
                        {
                            "file": module.source.file,
                            "line": module.source.class_line,
                            "name": module.class_name,
                            "path": call.path,
                            "code": cause.code,
                            "message": cause.message,
                            "change": cause.change,
                        }
                    )
                    break
        return marks


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def answer(session: Session, line: str) -> dict[str, Any]:
    """The reply to one line; what goes wrong with a trace is a sentence."""
    from twinlens.tracing.record import TraceError

    call = json.loads(line)
    methods = {
        "open": session.open,
        "details": session.details,
        "pair": session.pair,
        "unpair": session.unpair,
        "summaries": session.summaries,
    }
    if importlib.util.find_spec("numpy") is None:
        said = (
            f"{sys.executable} has no numpy, which comparing traces needs: run {sys.executable} -m pip install numpy."
        )
        return {"id": call["id"], "error": said}
    try:
        return {"id": call["id"], "result": methods[call["method"]](call["params"])}
    except TraceError as error:
        return {"id": call["id"], "error": str(error)}
    except OSError as error:
        return {"id": call["id"], "error": f"{error.filename}: {error.strerror}."}


def take_standard_output() -> TextIO:
    """Standard output for the protocol alone; what libraries print goes to standard error."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return ours


def main() -> None:
    output = take_standard_output()
    session = Session()
    for line in sys.stdin:
        output.write(json.dumps(answer(session, line), ensure_ascii=False, allow_nan=False) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
