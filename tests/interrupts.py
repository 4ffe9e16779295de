"""Interrupts of child processes."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MOST_S = 60
"""A process that has not come so far within this time hangs."""


def heed_interrupts() -> None:
    """Take interrupts in the new process. A shell starts background jobs that ignore them, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def of_session(leader: int) -> list[int]:
    """The processes of the session that ``leader`` started, without those that have ended (Linux)."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session = status.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(int(status.parent.name))
    return found


def wait_until(happened, what: str) -> None:
    """Wait until ``happened()``."""
    end = time.monotonic() + MOST_S
    while not happened():
        assert time.monotonic() < end, f"not within {MOST_S} s: {what}"
        time.sleep(0.01)


def reads(leader: int, file: os.PathLike) -> bool:
    """Whether a process of the session of ``leader`` has ``file`` open (Linux)."""
    for process in of_session(leader):
        for link in Path(f"/proc/{process}/fd").glob("*"):
            with suppress(OSError):
                if os.path.samefile(link, file):
                    return True
    return False
