"""What the processes that this one started take (Linux)."""

from __future__ import annotations

import os
import re
import resource
from contextlib import suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


def children() -> list[Path]:
    """The folders in /proc of the processes that this one started and that run."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state not in "ZX":
                found.append(status.parent)
    return found


def seconds_of_children() -> float:
    """Processor time that those that run and those that have ended took so far."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for child in children():
        with suppress(OSError):
            ticks += sum(map(int, (child / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return ended.ru_utime + ended.ru_stime + ticks / TICKS


def peak_of_children() -> int:
    """Bytes of memory that the largest of those that run has taken."""
    peaks = [0]
    for child in children():
        with suppress(OSError):
            peaks += [int(kilobytes) << 10 for kilobytes in PEAK.findall((child / "status").read_text())]
    return max(peaks)
