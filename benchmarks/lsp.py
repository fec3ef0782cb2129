"""How fast the language server answers: `python benchmarks/lsp.py`.

Prints the time from the process's start to the answer of `initialize`, and the time of a hover over the protocol with
the index of a copy of the whole installed transformers: warm, while that index is built anew, and the time from the
save of one of the library's files until a hover has answered from what it holds now.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from twinlens.source.definitions import Definition, read_definitions

SAMPLE = Path(__file__).parents[1] / "tests" / "samples" / "lumen" / "modeling_lumen.py"
STARTS = 5
SAVES = 10


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; `ready` is set once its index answers."""

    client: LanguageClient
    ready: asyncio.Event
    seconds_to_initialize: float


@asynccontextmanager
async def running(cache: str, library: Path) -> AsyncGenerator[Server]:
    """A server of this interpreter, ended at the end."""
    client = LanguageClient("twinlens-benchmark", "1")
    ready = asyncio.Event()

    @client.feature("twinlens/indexStatus")
    def told(status: types.LSPObject) -> None:
        (ready.set if getattr(status, "state", "") == "ready" else ready.clear)()

    @client.feature(types.WORKSPACE_CONFIGURATION)
    def configured(params: types.ConfigurationParams) -> list[dict[str, list[str]]]:
        return [{"library": [str(library)]} for _ in params.items]

    start = time.perf_counter()
    await client.start_io(sys.executable, "-m", "twinlens.lsp")
    options = {"interpreter": sys.executable, "cacheDir": cache}
    able = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(configuration=True))
    await client.initialize_async(types.InitializeParams(able, initialization_options=options))
    seconds = time.perf_counter() - start
    client.initialized(types.InitializedParams())
    try:
        yield Server(client, ready, seconds)
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


async def hover(client: LanguageClient, uri: str, definition: Definition) -> float:
    """Seconds of one hover that answers."""
    position = types.Position(definition.line - 1, definition.name_column)
    start = time.perf_counter()
    answer = await client.text_document_hover_async(types.HoverParams(types.TextDocumentIdentifier(uri), position))
    seconds = time.perf_counter() - start
    if answer is None:
        raise RuntimeError(f"no hover on {definition.name}")
    return seconds


async def hovers(client: LanguageClient, uri: str, definitions: Sequence[Definition], rounds: int) -> list[float]:
    """Seconds of each hover, one after another over all definitions."""
    return [await hover(client, uri, definition) for _ in range(rounds) for definition in definitions]


async def hovers_until(
    done: asyncio.Task, client: LanguageClient, uri: str, names: Sequence[Definition]
) -> list[float]:
    """Seconds of each hover while `done` is not, with a pause between them as a person makes one."""
    seconds: list[float] = []
    while not done.done():
        seconds.append(await hover(client, uri, names[len(seconds) % len(names)]))
        await asyncio.sleep(0.05)
    return seconds


async def saves(server: Server, library: Path, uri: str, definition: Definition) -> list[float]:
    """Seconds from each save of a library file, with a class renamed, to the answer of a hover after it."""
    path = library / "llama" / "modeling_llama.py"
    text = path.read_text(encoding="utf-8")
    saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
    seconds: list[float] = []
    for number in range(SAVES):
        path.write_text(text.replace("class LlamaMLP", f"class LlamaMLP{number}"), encoding="utf-8")
        server.ready.clear()
        start = time.perf_counter()
        server.client.text_document_did_save(saved)
        await server.ready.wait()
        await hover(server.client, uri, definition)
        seconds.append(time.perf_counter() - start)
    return seconds


async def measure(cache: str, library: Path, rounds: int) -> None:
    """All figures, one a line."""
    starts = []
    for _ in range(STARTS):
        async with running(cache, library) as server:
            starts.append(server.seconds_to_initialize)
    show("initialize, from the start of the process", starts)
    text = SAMPLE.read_text(encoding="utf-8")
    names = read_definitions(text)
    async with running(cache, library) as server:
        client, uri = server.client, SAMPLE.as_uri()
        client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text))
        )
        await server.ready.wait()
        await hovers(client, uri, names, 1)
        show("hover, warm index", await hovers(client, uri, names, rounds))
        rebuild = asyncio.ensure_future(client.protocol.send_request_async("twinlens/rebuildIndex", {}))
        show("hover, while the index is built anew", await hovers_until(rebuild, client, uri, names))
        await rebuild
        show("a library file is saved, then a hover", await saves(server, library, uri, names[0]))


def show(what: str, seconds: Sequence[float]) -> None:
    """One line: median, 95th percentile and worst, in milliseconds."""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    figures = [statistics.median(ordered), p95, ordered[-1]]
    median, p95, worst = (f"{1000 * figure:7.1f}" for figure in figures)
    print(f"{what:44} n={len(ordered):4}  median {median} ms  p95 {p95} ms  worst {worst} ms", flush=True)


def main() -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="hovers over each definition (default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        installed = find_spec("transformers")
        if installed is None or installed.origin is None:
            parser.error("this interpreter has no transformers")
        library = Path(temporary, "models")
        shutil.copytree(Path(installed.origin).parent / "models", library)
        asyncio.run(measure(str(Path(temporary, "cache")), library, arguments.rounds))


if __name__ == "__main__":
    main()
