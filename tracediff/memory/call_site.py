"""Stacks of a memory snapshot → the call site that allocated a block."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tracediff.ingest.names import bounded

OF_TORCH = re.compile(r"[/\\](?:torch|triton|torchgen)[/\\]|^torch[/\\]|^<")
"""Files of torch, or made by it (``<eval_with_key>``, ``<frozen runpy>``)."""
COMPILED = (".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".so")
"""Endings of files that are not Python."""
SEPARATOR = re.compile(r"[/\\]")


class CallSite(NamedTuple):
    """A line of Python: the name of its file without folders, the line, the function; all empty if unknown."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}" if self.file else UNKNOWN

    @property
    def module(self) -> str:
        """The file without its ending."""
        return self.file.removesuffix(".py") if self.file else UNKNOWN


UNKNOWN = "unknown: no stack recorded"
NO_SITE = CallSite("", 0, "")


class CallSites:
    """The call site of each stack. A stack or frame that occurs often is looked at once, while its document lives."""

    def __init__(self) -> None:
        self._of_stack: dict[int, CallSite] = {}
        self._of_frame: dict[int, tuple[int, CallSite]] = {}

    def of(self, frames: Any) -> CallSite:
        """The innermost frame of ``frames`` (innermost first) outside torch; if there is none, the innermost of torch's
        Python; without any Python `NO_SITE`.
        """
        if not isinstance(frames, list) or not frames:
            return NO_SITE
        known = self._of_stack.get(id(frames))
        if known is None:
            known = self._of_stack[id(frames)] = self._find(frames)
        return known

    def _find(self, frames: list[Any]) -> CallSite:
        best_rank, best = len(RANKS), NO_SITE
        for frame in frames:
            ranked = self._of_frame.get(id(frame))
            if ranked is None:
                ranked = self._of_frame[id(frame)] = _ranked(frame)
            if ranked[0] == 0:
                return ranked[1]
            if ranked[0] < best_rank:
                best_rank, best = ranked
        return best


RANKS = ("of a user", "of torch", "not Python")


def _ranked(frame: Any) -> tuple[int, CallSite]:
    """(position in `RANKS`, call site) of a frame, a dictionary of filename, line and name."""
    if not isinstance(frame, dict):
        return 2, NO_SITE
    path, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
    if not isinstance(path, str) or not isinstance(name, str) or not path or path == "??":
        return 2, NO_SITE
    file = SEPARATOR.split(path)[-1] or path
    if path.endswith(COMPILED) or ".so." in file:
        return 2, NO_SITE
    site = CallSite(bounded(file), line if isinstance(line, int) else 0, bounded(name))
    return (1 if OF_TORCH.search(path) else 0), site
