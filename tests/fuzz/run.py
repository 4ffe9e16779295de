"""One process: inputs, one after another, each with bounded time and memory."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random

from fuzz.targets import TARGETS, try_input

MOST_MEMORY = 4 << 30
"""Bytes that a process may take."""
WEIGHTS = {
    "trace": 12,
    "layout": 6,
    "database": 3,
    "device": 3,
    "capture": 2,
    "memory": 3,
    "log": 2,
    "account": 3,
    "execution": 3,
    "snapshot": 4,
    "manifest": 2,
    "pair": 1,
    "environment": 2,
    "settings": 1,
    "rules": 1,
}


class TooSlow(BaseException):
    """An input takes longer than its target may; no handler of an Exception may hold it."""


def _too_slow(_signal: int, _frame: object) -> None:
    raise TooSlow


def run(seed: int, until: float, faults: Path, names: list[str]) -> Counter[str]:
    """Inputs from ``seed`` on, until the clock says ``until``; counts by target and result."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGVTALRM, _too_slow)
    warnings.simplefilter("error")
    found: Counter[str] = Counter()
    order = [name for name in names for _ in range(WEIGHTS[name])]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
        number = 0
        while time.monotonic() < until:
            random = Random(f"{seed}:{number}")
            name = random.choice(order)
            content = TARGETS[name].make(random)
            signal.setitimer(signal.ITIMER_VIRTUAL, TARGETS[name].seconds)
            try:
                result = "answered" if try_input(TARGETS[name], content, Path(scratch), random) else "refused"
            except (Exception, TooSlow):
                result = "FAULT"
                place = faults / f"{name}-{seed}-{number}"
                place.write_bytes(content)
                place.with_suffix(".txt").write_text(traceback.format_exc(), "utf-8", "backslashreplace")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            found[f"{name} {result}"] += 1
            number += 1
    return found
