"""Time and memory of a command, in a process of its own; and the section of a document that a benchmark writes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cli")])}


def command_line(*arguments: object) -> list[str]:
    """The command that runs tracediff."""
    return [sys.executable, "-m", "tracediff", *map(str, arguments)]


@dataclass(frozen=True)
class Cost:
    """The cost of a process and its children.

    Attributes:
        wall, cpu: wall time and CPU time in seconds. peak: peak resident memory in bytes.
        fault: error message if the process failed, else empty.
    """

    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    fault: str = ""

    def __str__(self) -> str:
        return self.fault or f"{self.wall:.2f} s, CPU {self.cpu:.2f} s, {self.peak / 1e6:,.0f} MB"


def measured(command: Sequence[str], runs: int) -> Cost:
    """Minimum times and maximum memory of ``runs`` runs."""
    costs: list[Cost] = []
    for _ in range(runs):
        cost = _measured_once(command)
        print(f"  {cost}", file=sys.stderr, flush=True)
        if cost.fault:
            return cost
        costs.append(cost)
    return Cost(min(c.wall for c in costs), min(c.cpu for c in costs), max(c.peak for c in costs))


def in_turn(commands: Sequence[Sequence[str]], runs: int) -> list[Cost]:
    """Median times and maximum memory of each of ``commands``, run in turn, so that what else the machine does meets
    them alike; a first round, which fills caches and compiles, does not count.
    """
    rounds = [[_measured_once(command) for command in commands] for _ in range(runs + 1)][1:]
    of_commands = list(zip(*rounds, strict=True))
    if faults := [cost for cost in rounds[0] if cost.fault]:
        return [faults[0]] * len(commands)
    return [
        Cost(median(c.wall for c in costs), median(c.cpu for c in costs), max(c.peak for c in costs))
        for costs in of_commands
    ]


def _measured_once(command: Sequence[str]) -> Cost:
    peaks = [0]
    done = threading.Event()
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT
        )
        watch = threading.Thread(target=_watch, args=(process.pid, peaks, done))
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        done.set()
        watch.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            return Cost(fault=f"failed ({process.returncode}): {lines[-1] if lines else 'no message'}")
    largest = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(wall, usage.ru_utime + usage.ru_stime, max(largest, *peaks))


def _watch(pid: int, peaks: list[int], done: threading.Event) -> None:
    """Sample the memory of a process and its children together; ``ru_maxrss`` is only that of the largest one."""
    while not done.wait(0.02):
        peaks.append(_resident(pid))


def _resident(pid: int | str) -> int:
    """Resident bytes of a process and its descendants; pages that some share count once. 0 without /proc."""
    try:
        parts = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
        own_bytes = next(1024 * int(words[1]) for words in parts if words[0] == "Pss:")
        children = [c for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    except (OSError, StopIteration):
        return 0
    return own_bytes + (sum(map(_resident, children)) if children else 0)


def write_section(document: Path, name: str, command: str, lines: Sequence[str]) -> None:
    """Put ``lines`` between the markers of the section ``name``, which ``command`` writes."""
    start, end = f"<!-- {name}: written by {command} -->", f"<!-- end of {name} -->"
    before, found, rest = document.read_text().partition(start)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{document}: the markers are missing; restore {start} and {end}")
    document.write_text("\n".join([before + start, *lines, end + after]))
