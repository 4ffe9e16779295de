"""Pickles of plain containers: dictionaries, lists, pairs of whole numbers, strings, numbers, booleans and None.

A pickle is a program for a small machine. Before that machine runs, every instruction is checked against the few that
plain containers need, so a file can ask for no class, function or persistent object, and the unpickler refuses them
again. What the check guarantees:

- Memory: at most MOST_BYTES are read, with at most one container per PICKLE_BYTES bytes; no instruction reserves
  more than it contains; places of the memo are below the position in the file. An unpickled object takes at most
  about 30 times the size of the pickle; real snapshots take about 6 times.
- Time: proportional to the size. Numbers have at most 64 bits and the only tuples are pairs of numbers of 32 bits, so
  no file can choose many keys of a dictionary that collide.
- Nesting: nothing in Python recurses into lists or dictionaries while they are made or freed, and tuples do not nest.
  An object that occurs many times is one object; whoever walks the result must count it once.
"""

import io
import pickle
import re
from typing import Any, NoReturn

from tracediff import bounds
from tracediff.errors import TracediffError

MOST_BYTES = 1 << 28
"""Bytes of a pickle: a snapshot of two million events, whose objects take about 1.5 GB."""
PROTOCOLS = range(2, 6)


def _sized(code: bytes, most: int) -> bytes:
    """The pattern of an instruction that has its size, up to ``most``, in its first byte."""
    return code + rb"(?:" + b"|".join(b"\\x%02x.{%d}" % (size, size) for size in range(most + 1)) + rb")"


_SMALL = rb"(?:K.|M..|J....)"
_TOKENS = (
    rb"j....",
    rb"[hq].",
    rb"[\x94}\](aueNs\x88\x89]++",
    _SMALL + rb"(?:" + _SMALL + rb"\x86)?+",
    _sized(rb"\x8a", 8),
    rb"G.{8}",
    rb"\x95.{8}",
    _sized(rb"\x8c", 31),
)
_PLAIN = re.compile(rb"(?s:" + rb"|".join(_TOKENS) + rb")*+")
"""Instructions that make containers, numbers, booleans, None, pairs of small numbers, short strings, memo entries and
frames, the frequent ones first.
"""
SHORT_STRING, STRING, LONG_PUT, STOP = 0x8C, ord("X"), ord("r"), ord(".")
FOR_CLASSES = frozenset(b"ciobR\x81\x82\x83\x84\x92\x93PQ")
"""Instructions that import, call or restore an object."""


class _PlainUnpickler(pickle.Unpickler):
    """Refuses every class and persistent object; `_check` refuses them before it runs."""

    def find_class(self, module: str, name: str) -> NoReturn:  # noqa: ARG002  # pickle's signature
        raise pickle.UnpicklingError("a class")

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002  # pickle's signature
        raise pickle.UnpicklingError("a persistent object")


def load_plain(data: bytes, subject: str) -> Any:
    """The object that ``data`` contains; lists and dictionaries in it may be shared or contain themselves.

    Args:
        subject: the file, for errors.

    Raises:
        TracediffError: it is not a pickle of plain containers, is cut off or damaged, or is larger than the limits.
    """
    _check(data, subject)
    try:
        return _PlainUnpickler(io.BufferedReader(io.BytesIO(data))).load()
    except MemoryError:
        raise TracediffError(subject, "does not fit into memory", "record fewer events (max_entries)") from None
    except Exception:  # instructions in an order that makes no sense: IndexError, TypeError, AttributeError, …
        reason = "is damaged: its instructions make no object"
        raise TracediffError(subject, reason, "copy or record it again") from None


def _check(data: bytes, subject: str) -> None:
    """Raise the error of `load_plain` unless every instruction up to the end is a plain one."""
    if data[:1] != b"\x80" or len(data) < 2 or data[1] not in PROTOCOLS:
        raise TracediffError(subject, "is not a pickle", "give a file of torch.cuda.memory._dump_snapshot")
    if data.count(b"}") + data.count(b"]") > len(data) // bounds.PICKLE_BYTES + bounds.PICKLE_CONTAINERS:
        raise TracediffError(subject, "has more containers than a memory snapshot of its size", "record it again")
    position = 2
    try:
        while True:
            instruction = _PLAIN.match(data, position)
            position = instruction.end() if instruction else position
            code = data[position]
            if code == SHORT_STRING:
                position += 2 + data[position + 1]
            elif code == STRING:
                position += 5 + int.from_bytes(data[position + 1 : position + 5], "little")
            elif code == LONG_PUT and int.from_bytes(data[position + 1 : position + 5], "little") <= position:
                position += 5
            elif code == STOP:
                return
            else:
                raise _refused(code, subject, is_cut=len(data) - position < 9)
    except IndexError:
        raise _cut(subject) from None


def _refused(code: int, subject: str, *, is_cut: bool) -> TracediffError:
    """The error of an instruction that is not plain; ``is_cut``: whether the file may end within it."""
    if code in FOR_CLASSES:
        reason = "asks for a Python class or function, which a memory snapshot never does"
        return TracediffError(subject, reason, "do not load it; record the snapshot again with _dump_snapshot")
    if is_cut and (instruction := _PLAIN.match(bytes([code]) + bytes(9))) and instruction.end():
        return _cut(subject)
    reason = f"contains what a memory snapshot does not (pickle instruction {bytes([code])!r})"
    return TracediffError(subject, reason, "give a file of torch.cuda.memory._dump_snapshot")


def _cut(subject: str) -> TracediffError:
    return TracediffError(subject, "is cut off", "copy or record it again")
