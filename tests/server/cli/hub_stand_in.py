"""The part of the Hub's HTTP interface that an exchange of files needs, for the real client to talk to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubStandIn:
    """Datasets by name, each a mapping from a path to its bytes; `cut` names files that are sent short."""

    def __init__(self) -> None:
        self.datasets: dict[str, dict[str, bytes]] = {}
        self.cut: set[str] = set()
        self.url = ""

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
        self.datasets.setdefault(name, {})
        return {"url": f"{self.url}/datasets/{name}"}

    def tree(self, name: str) -> list[dict[str, Any]]:
        return [
            {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
            for path, content in self.datasets[name].items()
        ]

    def preupload(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Every file goes into the commit itself, none by LFS."""
        modes = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in asked["files"]]
        return {"files": modes}

    def commit(self, name: str, lines: str) -> dict[str, Any]:
        for line in filter(None, lines.split("\n")):
            item = json.loads(line)
            if item["key"] == "file":
                self.datasets[name][item["value"]["path"]] = base64.b64decode(item["value"]["content"])
        return {"commitUrl": f"{self.url}/datasets/{name}/commit/{COMMIT}", "commitOid": COMMIT, "success": True}


class Server(ThreadingHTTPServer):
    def __init__(self, hub: HubStandIn) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hub = hub


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.server.hub, unquote(urlsplit(self.path).path)
        name = self._dataset(path)
        if name and "/tree/" in path:
            return self._json(hub.tree(name))
        file = path.partition("/resolve/")[2].partition("/")[2]
        if name and file in hub.datasets[name]:
            return self._file(file, hub.datasets[name][file])
        return self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    def do_POST(self) -> None:
        hub, body, path = self.server.hub, self._body().decode(), unquote(urlsplit(self.path).path)
        name = self._dataset(path)
        if path == "/api/repos/create":
            return self._json(hub.create(json.loads(body)))
        if name and "/preupload/" in path:
            return self._json(hub.preupload(json.loads(body)))
        if name and "/commit/" in path:
            return self._json(hub.commit(name, body))
        return self._json({"error": "unknown"}, 404)

    def _dataset(self, path: str) -> str | None:
        return next((name for name in self.server.hub.datasets if f"/datasets/{name}/" in path), None)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _json(self, value: object, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(json.dumps(value).encode(), status, {"Content-Type": "application/json", **(headers or {})})

    def _file(self, name: str, content: bytes) -> None:
        etag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        self._send(content[: len(content) // 2] if name in self.server.hub.cut else content, 200, headers)

    def _send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def running_hub() -> Generator[HubStandIn]:
    hub = HubStandIn()
    server = Server(hub)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
