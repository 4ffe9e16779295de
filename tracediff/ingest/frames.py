"""Frames: the lines of code in the stacks that torch and Python write."""

from __future__ import annotations

import re

FRAMES = (
    re.compile(r"^(?P<file>.*\.py)\((?P<line>\d{1,9})\): (?P<function>.+)"),
    re.compile(r"^File \"(?P<file>[^\"]+)\", line (?P<line>\d{1,9}), in (?P<function>.+)"),
)
"""One frame, as torch's profiler and as Python writes it."""
TORCH_FOLDER = re.compile(r"(^|-packages[/\\])torch[/\\]|(^|[/\\])tracediff[/\\]collect[/\\]")
"""Of torch, and of the recorder, which is no part of what is recorded."""
GENERATED = re.compile(r"[/\\]([a-z2-7]{2})[/\\]c\1[a-z2-7]{49}\.py\b")
"""Of Inductor, in whatever folder it keeps its code: a hash, in a folder of two of its letters."""
LINE_OF_CODE = re.compile(r"^(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
"""``model.py(12): forward``."""
OUTERMOST = "<module>"


def is_of_torch(file: str) -> bool:
    """Whether a path is of torch, the recorder, or code that Inductor generated."""
    return bool(TORCH_FOLDER.search(file) or GENERATED.search(file))


def line_of_code(file: str, line: str, function: str) -> str | None:
    """``model.py(12): forward``, without folders; None within torch and for generated code."""
    if is_of_torch(file) or file.startswith("<"):
        return None
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}({line}): {function.strip()}"


def innermost_line(stack: str) -> str | None:
    """The line of code of the innermost frame outside of torch; None if the text names none.

    Tracebacks and torch ≥ 1.12 begin with the outermost frame, torch before it with the innermost.
    """
    is_traceback = 'File "' in stack
    if is_traceback and "\n" not in stack:  # some logs escape line ends twice
        stack = stack.replace("\\n", "\n")
    pieces = (piece.strip() for line in stack.splitlines() for piece in line.split(";"))
    matches = (pattern.fullmatch(piece) for piece in pieces for pattern in FRAMES)
    frames = [(m["file"], m["line"], m["function"]) for m in matches if m]
    if frames and (is_traceback or stack.rstrip().endswith(";") or frames[0][2] == OUTERMOST):
        frames.reverse()
    return next(filter(None, (line_of_code(*frame) for frame in frames)), None)
