"""Two traces over the protocol: the table, a row, pairs made by hand, marks in the source, and what is damaged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsp_harness import Editor, editor
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "server" / "diffing"))
import traces
from traces import inputs, net, write_trace

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Renamed(nn.Module):
    """The net under names that nothing connects with the original's, and with another function in one layer."""

    def __init__(self, original: traces.Net):
        super().__init__()
        self.stages = original.layers
        self.stages[1].act = nn.Tanh()

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    write_trace(root / "reference", net(), inputs())
    write_trace(root / "port", Renamed(net()).eval(), inputs())
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(workspace: Path, tmp_path_factory: pytest.TempPathFactory):
    settings = {"library": [str(tmp_path_factory.mktemp("library"))]}
    async with editor(tmp_path_factory.mktemp("cache"), settings, folders=[workspace]) as opened:
        yield opened


async def opened(server: Editor, workspace: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    params = {"id": "1", "reference": str(workspace / "reference"), "port": str(workspace / "port"), **options}
    answer = await server.ask("twinlens/diffOpen", params, 60)
    return answer, json.loads(Path(answer.table).read_text(), parse_constant=pytest.fail)


async def test_the_table_holds_both_trees_and_the_origin(server: Editor, workspace: Path):
    answer, table = await opened(server, workspace)
    assert answer.outcome == "differ"
    (origin,) = table["origins"]
    row = table["rows"][origin["row"]]
    assert (row["r"], row["q"]) == ("Net.layers.1.act", "Renamed.stages.1.act")
    assert (row["v"], origin["code"]) == ("originates here", "activation-variant")
    assert [table["rows"][row["p"]]["q"]] == ["Renamed.stages.1"]


async def test_a_row_tells_all_that_is_known_of_it(server: Editor, workspace: Path):
    _, table = await opened(server, workspace)
    place = table["origins"][0]["row"]
    details = json.loads((await server.ask("twinlens/diffRow", {"id": "1", "row": place})).json)
    assert details["causes"][0]["message"] == "the reference applies GELU (erf), the port tanh"
    assert [tensor["side"] for tensor in details["tensors"]] == ["inputs", "outputs"]
    assert details["tensors"][0]["error"]["relative"] < 1e-6
    assert len(details["tokens"]) == 2 * 5


async def test_two_modules_paired_by_hand_stay_paired_when_opened_again(server: Editor, workspace: Path):
    await opened(server, workspace)
    pair = {"id": "1", "reference": "Net.layers.0.up", "port": "Renamed.stages.0.down"}
    await server.ask("twinlens/diffPair", pair)
    assert 'reference = "layers.{i}.up"' in (workspace / ".twinlens" / "align.toml").read_text()
    _, table = await opened(server, workspace)
    by_hand = [row for row in table["rows"] if row["h"] == "map"]
    assert [(row["r"], row["q"]) for row in by_hand] == [
        (f"Net.layers.{i}.up", f"Renamed.stages.{i}.down") for i in range(3)
    ]
    await server.ask("twinlens/diffPair", {**pair, "apart": True})
    _, table = await opened(server, workspace)
    assert not [row for row in table["rows"] if row["h"] == "map"]


async def test_both_summaries_name_paired_modules_alike(server: Editor, workspace: Path):
    await opened(server, workspace)
    found = await server.ask("twinlens/diffSummaries", {"id": "1"})
    ours, theirs = (json.loads(Path(path).read_text()) for path in (found.reference, found.port))
    assert [node["module"] for node in ours] == [node["module"] for node in theirs]
    differing = [a["module"] for a, b in zip(ours, theirs, strict=True) if a != b]
    assert differing[0] == "Renamed"
    assert "Renamed.stages.0" not in differing
    assert "Renamed.stages.1.act" in differing


async def test_the_origin_is_marked_in_the_ports_source_until_the_diff_is_closed(server: Editor, workspace: Path):
    await opened(server, workspace)
    file = Path(traces.__file__)
    server.open(file.as_uri(), file.read_text())
    assert "activation-variant" in await marks(server, file)
    await server.ask("twinlens/diffClose", {"id": "1"})
    assert "activation-variant" not in await marks(server, file)


async def marks(server: Editor, file: Path) -> list[Any]:
    asked = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(file.as_uri()))
    report = await server.client.text_document_diagnostic_async(asked)
    return [item.code for item in report.items]


async def test_a_damaged_trace_is_one_sentence(server: Editor, workspace: Path):
    with pytest.raises(JsonRpcException, match="does not exist; choose a trace's folder"):
        await opened(server, workspace, id="2", port=str(workspace / "absent"))


async def test_a_diff_that_is_not_open_is_one_sentence(server: Editor):
    with pytest.raises(JsonRpcException, match="choose Compare Traces again"):
        await server.ask("twinlens/diffRow", {"id": "never", "row": 0})


async def test_traces_that_cannot_be_opened_leave_nothing_to_pair(server: Editor, workspace: Path):
    where = {"id": "2", "reference": str(workspace / "nowhere"), "port": str(workspace / "port")}
    with pytest.raises(JsonRpcException, match="nowhere does not exist"):
        await server.ask("twinlens/diffOpen", {**where, "rtol": -1.0, "replay": False}, 60)
    with pytest.raises(JsonRpcException, match="not open any more"):
        await server.ask("twinlens/diffPair", {"id": "2", "reference": "a", "port": "b", "apart": False})
