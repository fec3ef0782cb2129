"""What passes between the server and its similarity processes: one JSON object a line.

To the worker: `{"id": 1, "method": "search", "params": {…}}`; from it `{"id": 1, "result": …}` or
`{"id": 1, "error": "one sentence"}`. A build process only writes: `{"stage": …, "percent": …}`, and at the end
`{"problems": […]}` or `{"error": "one sentence"}`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from twinlens.similarity.answers import Answer, Match, QueryDefinition, QueryFile, RankedMatch


def take_stdout() -> TextIO:
    """The real standard output, for the protocol alone; what libraries print from now on goes to standard error."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return protocol


def query_to_json(query: QueryFile) -> dict[str, Any]:
    return asdict(query)


def query_from_json(raw: dict[str, Any]) -> QueryFile:
    return QueryFile(
        raw["model"],
        tuple(
            QueryDefinition(
                item["name"],
                item["kind"],
                item["line"],
                tuple(item["bases"]),
                tuple(item["methods"]),
                item["sanitised"],
            )
            for item in raw["definitions"]
        ),
    )


def answers_to_json(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    return [asdict(answer) for answer in answers]


def answers_from_json(raw: Sequence[dict[str, Any]]) -> list[Answer]:
    return [
        Answer(
            tuple(Match(**match) for match in item["embedding"]),
            tuple(Match(**match) for match in item["jaccard"]),
            tuple(item["intersection"]),
            tuple(
                RankedMatch(
                    Match(**ranked["match"]), ranked["score"], tuple(ranked["twins"]), tuple(ranked["ancestors"])
                )
                for ranked in item["ranked"]
            ),
            tuple(Match(**match) for match in item["parents"]),
        )
        for item in raw
    ]
