"""A command whose processes all end with it, and with the process that started it, however that ends.

Between the two is a guard, which this file is as a program: it leads the command's process group, and ends the group
once its standard input does, which the starting process has open.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

NOT_STARTED = 127
"""Exit code of a command that cannot be started, as in a shell."""
GRACE_S = 10
"""Seconds in which the command may end its own processes, in groups of theirs, before it is killed."""


def run_group(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: IO[bytes]) -> int:
    """The exit code of ``command``, the negative number of the signal that ended it, or `NOT_STARTED`; none of its
    process group runs any more.

    Args:
        log: receives all that it writes.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    ) as guard:  # whose standard input is closed at the end, whatever happens
        assert guard.stdout is not None
        return int(guard.stdout.readline() or -signal.SIGKILL)


def _guard(command: Sequence[str]) -> None:
    for ending in (signal.SIGTERM, signal.SIGINT):  # handlers, which the command does not inherit
        signal.signal(ending, lambda *_: None)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        print(NOT_STARTED, flush=True)
        return
    threading.Thread(target=lambda: _tell(process.wait()), daemon=True).start()
    os.read(0, 1)
    os.killpg(0, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _tell(code: int) -> None:
    with suppress(OSError):
        print(code, flush=True)


if __name__ == "__main__":
    _guard(sys.argv[1:])
