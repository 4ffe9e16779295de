"""NVTX ranges of an nsys database: PyTorch's operators, and annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from tracediff.ingest import categories as cat
from tracediff.ingest.health import Notes
from tracediff.ingest.readers.builder import TraceBuilder, distinct, json_text
from tracediff.ingest.readers.database import Database
from tracediff.ingest.times import MISSING
from tracediff.patterns import NAMES_KEPT
from tracediff.runtimes import collective_of_scope

RANGES, STRINGS = "NVTX_EVENTS", "StringIds"
PUSH_POP, START_END = 59, 60
"""Types of events that are ranges; the others name domains, threads and categories, or mark an instant."""
OP_ID, SEQUENCE, SIZES, INPUTS = ", op_id = ", ", seq = ", ", sizes = ", ", input_op_ids = "
"""What PyTorch's emit_nvtx writes behind a name: ``aten::mul, seq = 5, op_id = 7, sizes = [[2, 3], []]``."""
LONGEST_NUMBER = 18
"""Digits that fit 64 bits."""
SCOPE = re.compile(r".*[ #(]|Optimizer\.")
"""Names of record_function; those of operators have no such characters."""


Parsed = tuple[str, bool, int, int, str]
"""Name, whether it is an operator's, sequence number, id, and sizes as JSON, of a range."""


def add_ranges(builder: TraceBuilder, database: Database, condition: tuple[str, Sequence[int]], notes: Notes) -> None:
    """Add the ranges of the threads that ``condition`` selects."""
    where, values = condition
    types = f'"eventType" IN ({PUSH_POP}, {START_END})'
    columns = "start", "end", "globalTid", "textId", "eventType"
    (start, end, thread, text_id, kind), texts = database.integers_and_text(
        RANGES, columns, "text", f"{types} AND {where}" if where else types, values
    )
    registered = database.texts(STRINGS, "id", "value", text_id)
    texts = [text or registered.get(key, "") for text, key in zip(texts, text_id.tolist(), strict=True)]
    is_open = end == MISSING
    notes.add("open-ranges", "NVTX ranges that do not end in the recording were dropped", int(is_open.sum()))
    parsed = {text: _parsed(text) for text in dict.fromkeys(texts)}
    rows = [parsed[text] for text in texts]
    is_op = np.array([row[1] for row in rows], bool) & (kind == PUSH_POP)
    for category, mine in ((cat.CPU_OP, is_op & ~is_open), (cat.ANNOTATION, ~is_op & ~is_open)):
        some = [row for row, is_mine in zip(rows, mine.tolist(), strict=True) if is_mine]
        builder.add(
            category,
            distinct([row[0] for row in some]),
            start[mine],
            end[mine],
            thread=thread[mine],
            ints={
                "Sequence number": np.array([row[2] for row in some], np.int64),
                "External id": np.array([row[3] for row in some], np.int64),
            },
            texts={"Input Dims": [row[4] for row in some]},
        )


def _parsed(text: str) -> Parsed:
    """What a range says."""
    head, _, rest = text.partition(SIZES)
    name, op = _number_behind(head, OP_ID)
    name, sequence = _number_behind(name, SEQUENCE)
    if op == sequence == MISSING:
        return text or "an unnamed range", False, MISSING, MISSING, ""
    return *_named(name), sequence, op, _sizes(rest.partition(INPUTS)[0])


def _number_behind(text: str, mark: str) -> tuple[str, int]:
    """(what is before ``mark``, the number behind it); the whole text and MISSING where it does not end so."""
    before, found, digits = text.rpartition(mark)
    is_number = found and digits.isdecimal() and digits.isascii() and len(digits) <= LONGEST_NUMBER
    return (before, int(digits)) if is_number else (text, MISSING)


@lru_cache(maxsize=NAMES_KEPT)
def _named(name: str) -> tuple[str, bool]:
    """(the name, whether it is an operator's)."""
    return name, not SCOPE.match(name) and not collective_of_scope(name)


def _sizes(text: str) -> str:
    """Sizes of inputs in the layout of a `Trace`; empty where they are none."""
    try:
        return json_text(msgspec.json.decode(text, type=list)) if text else ""
    except msgspec.DecodeError:
        return ""
