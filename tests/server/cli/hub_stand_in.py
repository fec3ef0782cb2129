"""The part of the Hub's HTTP interface that an exchange of files needs, for the real client to talk to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubStandIn:
    """Datasets by name, each a mapping from a path to its bytes; `cut` names files that are sent short."""

    def __init__(self) -> None:
        self.datasets: dict[str, dict[str, bytes]] = {}
        self.cut: set[str] = set()
        self.url = ""


@contextmanager
def running_hub() -> Generator[HubStandIn]:
    hub = HubStandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_HEAD(self) -> None:  # noqa: N802
            self.do_GET()

        def do_GET(self) -> None:  # noqa: N802
            path = unquote(urlsplit(self.path).path)
            for name, files in hub.datasets.items():
                if path.startswith(f"/api/datasets/{name}/tree/"):
                    listed = [
                        {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                        for file, content in files.items()
                    ]
                    return self._json(listed)
                if path.startswith(f"/api/datasets/{name}"):
                    siblings = [{"rfilename": file} for file in files]
                    return self._json({"id": name, "sha": COMMIT, "siblings": siblings})
                if path.startswith(f"/datasets/{name}/resolve/"):
                    file = path.removeprefix(f"/datasets/{name}/resolve/").partition("/")[2]
                    if file in files:
                        return self._file(file, files[file])
            return self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

        def do_POST(self) -> None:  # noqa: N802
            body = self._body()
            path = unquote(urlsplit(self.path).path)
            if path == "/api/repos/create":
                asked = json.loads(body)
                name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
                hub.datasets.setdefault(name, {})
                return self._json({"url": f"{hub.url}/datasets/{name}"})
            for name, files in hub.datasets.items():
                if path.startswith(f"/api/datasets/{name}/preupload/"):
                    modes = [
                        {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                        for file in json.loads(body)["files"]
                    ]
                    return self._json({"files": modes})
                if path.startswith(f"/api/datasets/{name}/commit/"):
                    for line in filter(None, body.decode().split("\n")):
                        item = json.loads(line)
                        if item["key"] == "file":
                            files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
                    url = f"{hub.url}/datasets/{name}/commit/{COMMIT}"
                    return self._json({"commitUrl": url, "commitOid": COMMIT, "success": True})
            return self._json({"error": "unknown"}, 404)

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
            self._send(content[: len(content) // 2] if name in hub.cut else content, 200, headers)

        def _send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
