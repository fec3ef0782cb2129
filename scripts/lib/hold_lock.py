"""Hold the lock on the file named by the first argument until standard input closes; the system frees it if we die."""

from __future__ import annotations

import fcntl
import signal
import sys
from pathlib import Path


def say(word: str) -> None:
    """Tell the parent, one word a line."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


signal.signal(signal.SIGINT, signal.SIG_IGN)
with Path(sys.argv[1]).open("a") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting")
        fcntl.flock(lock, fcntl.LOCK_EX)
    say("held")
    sys.stdin.read()
