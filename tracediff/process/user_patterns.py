"""Regular expressions that users give, searched in names within limits of time.

Python's ``re`` may take exponential time, and a thread that runs it cannot be stopped. The patterns are therefore
searched in a process of their own, which the kernel interrupts after a second or more of its time: this holds on
the command line, in workers and in the dashboard's threads.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Sequence
from functools import lru_cache

from tracediff import bounds
from tracediff.errors import TracediffError, quoted
from tracediff.process.child import end_process

NONE, TOO_SLOW = -1, -2
"""Answers beside the number of the first pattern found. That of a pattern k that takes too long is ``TOO_SLOW - k``."""

SEARCH = f"""
import json, re, signal, sys, time
def stop(*_): raise TimeoutError
signal.signal(signal.SIGVTALRM, stop)
patterns = [re.compile(p, flags) for p, flags in json.loads(sys.stdin.readline())]
left = {bounds.PATTERN_S} + time.process_time()
for line in sys.stdin:
    name, found, left = json.loads(line), {NONE}, left + {bounds.PATTERN_NAME_S}
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, max(left - time.process_time(), 0.001))
        for k, pattern in enumerate(patterns):
            if pattern.search(name):
                found = k
                break
    except TimeoutError:
        found = {TOO_SLOW} - k
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(found, flush=True)
"""


def check_pattern(pattern: str, subject: str, remedy: str) -> None:
    """Raise a TracediffError unless ``pattern`` is a regular expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of "[[" and the like, which mean what they do today
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise TracediffError(subject, f"{quoted(pattern)} is not a regular expression ({why})", remedy) from None


def first_found(patterns: tuple[str, ...], name: str, subject: str, flags: re.RegexFlag = re.NOFLAG) -> int | None:
    """The position of the first of ``patterns`` that is found in ``name``, None if none is.

    Args:
        patterns: checked by `check_pattern`. subject: what the user gave, for the error.

    Raises:
        TracediffError: a pattern takes too long.
    """
    searcher = _searcher(patterns, int(flags), os.getpid())  # a forked process must not talk to its parent's
    answer = searcher.answer(name)
    if answer <= TOO_SLOW:
        pattern = patterns[TOO_SLOW - answer]
        raise TracediffError(
            subject,
            f"the pattern {quoted(pattern)} takes too long to search in names",
            "write it without repetitions within repetitions, such as (a+)+",
        )
    return None if answer == NONE else answer


class _Searcher:
    """The process that searches some patterns; used by one thread at a time."""

    def __init__(self, patterns: Sequence[str], flags: int, parent: int) -> None:
        import subprocess

        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SEARCH],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._send([(pattern, flags) for pattern in patterns])
        weakref.finalize(self, end_process, self._process, parent)

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def answer(self, name: str) -> int:
        """The number of the first pattern found in ``name``, or one of the other answers."""
        with self._lock:
            assert self._process.stdout is not None
            try:
                self._send(name)
                return int(self._process.stdout.readline())
            except (OSError, ValueError):  # the process is gone
                return TOO_SLOW


_searcher = lru_cache(maxsize=8)(_Searcher)
