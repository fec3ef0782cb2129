"""`python -m twinlens.lsp`: the language server over stdio, or over TCP with `--tcp`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import BinaryIO

from twinlens.lsp.log import log_to_client
from twinlens.lsp.server import create_server


def main() -> None:
    """Serves one client until it leaves."""
    parser = argparse.ArgumentParser(prog="python -m twinlens.lsp", description=__doc__)
    parser.add_argument("--tcp", action="store_true", help="serve one client on a port of this machine")
    parser.add_argument("--host", default="127.0.0.1", help="the address to bind (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8888, help="the port to bind (default: %(default)s)")
    arguments = parser.parse_args()
    server = create_server()
    log_to_client(server)
    if arguments.tcp:
        server.start_tcp(arguments.host, arguments.port)
    else:
        server.start_io(sys.stdin.buffer, _keep_stdout_for_the_protocol())


def _keep_stdout_for_the_protocol() -> BinaryIO:
    """The pipe to the client; whatever prints to stdout from now on, in Python or C, prints to stderr."""
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return pipe


if __name__ == "__main__":
    main()
