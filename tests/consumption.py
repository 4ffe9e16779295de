"""What the processes that this one started take (Linux)."""

from __future__ import annotations

import os
import re
import resource
from contextlib import suppress

TICKS = os.sysconf("SC_CLK_TCK")
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


def _of(process: str, name: str) -> str:
    with open(f"/proc/{process}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()


def of_children(module: str) -> tuple[float, int, set[str]]:
    """(seconds of processor time that all took so far; of those that run ``module`` now, the bytes of memory that the
    largest has taken, and their numbers).
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, peak, running = ended.ru_utime + ended.ru_stime, 0, set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            state, parent, *fields = _of(process, "stat").rpartition(")")[2].split()
            if int(parent) == os.getpid() and state not in "ZX" and module in _of(process, "cmdline"):
                seconds += sum(map(int, fields[9:11])) / TICKS
                peak = max(peak, *(int(kilobytes) << 10 for kilobytes in PEAK.findall(_of(process, "status"))))
                running.add(process)
    return seconds, peak, running
