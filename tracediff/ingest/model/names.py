"""Names of bounded length, as they enter; those of processes and threads, from a trace's metadata events; and the lines
of code in the stacks that torch and Python write.
"""

import re
import sys
from collections.abc import Sequence

import numpy as np

from tracediff import bounds
from tracediff.arrays import Int64, tuples, zeros
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Arguments, Codes, Trace
from tracediff.patterns import late

FRAMES = (
    late(r"^(?P<file>.*\.py)\((?P<line>\d{1,9})\): (?P<function>.+)"),
    late(r"^File \"(?P<file>[^\"]+)\", line (?P<line>\d{1,9}), in (?P<function>.+)"),
)
"""One frame, as torch's profiler and as Python writes it."""
TORCH_FOLDER = late(r"(^|-packages[/\\])torch[/\\]|(^|[/\\])tracediff[/\\]collect[/\\]")
"""Of torch, and of the recorder, which is not part of what is recorded."""
GENERATED = late(r"[/\\]([a-z2-7]{2})[/\\]c\1[a-z2-7]{49}\.py\b")
"""Of Inductor, in whatever folder it keeps its code: a hash, in a folder of two of its letters."""
LINE_OF_CODE = late(r"^(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
"""``model.py(12): forward``."""
OUTERMOST = "<module>"


def is_of_torch(file: str) -> bool:
    """Whether a path is of torch, the recorder, or code that Inductor generated."""
    return bool(TORCH_FOLDER.search(file) or GENERATED.search(file))


LIBRARIES = {*sys.stdlib_module_names, "numpy"}
"""Packages and modules that no program is written in."""
MODULE = late(r"^(?:.*[/\\]python3\.\d+[/\\](?:(?:site|dist)-packages[/\\])?)?(\w+)(?:[/\\]|\.py\b)")
"""The first part of a path below what Python's modules are found in."""


def is_of_library(file: str) -> bool:
    """Whether a path looks like one of Python's own library or NumPy; a program may have a file of such a name."""
    module = MODULE.match(file)
    return module is not None and module[1] in LIBRARIES


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


def as_one(lines: Sequence[str]) -> str | None:
    """Lines of code as one text, of many the first; None for none."""
    examples = (*lines[: bounds.EXAMPLES], *("…" for _ in lines[bounds.EXAMPLES :][:1]))
    return ", ".join(examples) or None


PROCESS_LABELS = {"name": "process_name", "labels": "process_labels"}
"""Argument that names a process → the metadata event that has it."""
THREAD_NAME = "thread_name"
"""The metadata event that names a thread."""


def bounded(name: str) -> str:
    """``name``; of one that is longer than is kept the beginning and a digest, so that two stay two."""
    if len(name) <= bounds.KEPT_NAME:
        return name
    import hashlib  # which loads OpenSSL

    digest = hashlib.blake2s(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{name[: bounds.KEPT_NAME - len(digest) - 2]}…#{digest}"


def process_labels(trace: Trace) -> list[list[str]]:
    """Code of each process → its names and labels, in the file's order."""
    labels: list[list[str]] = [[] for _ in range(int(trace.pid.max(initial=-1)) + 1)]
    for argument, event in PROCESS_LABELS.items():
        rows, codes = _metadata(trace, event, argument)
        for pid, code in tuples(trace.pid[rows], codes):
            labels[pid].append(trace.texts[code])
    return labels


def thread_names(trace: Trace) -> dict[tuple[int, int], str]:
    """(code of the process, code of the thread) → its name, the last of several."""
    rows, codes = _metadata(trace, THREAD_NAME, "name")
    return {(pid, tid): trace.texts[code] for pid, tid, code in tuples(trace.pid[rows], trace.tid[rows], codes)}


def _metadata(trace: Trace, event: str, argument: str) -> tuple[Int64, Codes]:
    """(rows of the metadata events of a name that have a text argument, codes of the texts)."""
    metadata = trace.arguments.get(cat.METADATA, Arguments(zeros(0)))
    codes = metadata.of_type(np.int32).get(argument, np.full(len(metadata.rows), -1, np.int32))
    ours = np.flatnonzero((codes >= 0) & trace.name_matches(event.__eq__, metadata.rows))
    return metadata.rows[ours], codes[ours]
