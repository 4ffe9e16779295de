"""The native reader of plain events (native/, an extension of its own): what it found, as parts of the columns.

It reads what Kineto usually writes and stops before any other event, which Python then reads; so both give the same
columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from tracediff import bounds
from tracediff.arrays import AnyArray, Bools, Int64, all_none, int64_of
from tracediff.ingest.json.arguments import OTHER_SPELLINGS, UNFIT_NAME, kind_of, may_be_text, respelled
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import ABSENT_OF, Codes, Columns, EventColumns
from tracediff.runtimes import CALL_CATEGORIES

try:
    import tracediff_native
except ImportError:
    tracediff_native = None

SWITCH, OFF = "TRACEDIFF_NATIVE", ("0", "no", "off", "false")
"""Environment variable, and its values that turn the native reader off."""
PLAIN_CHUNK = 1 << 21
"""Bytes that the native reader reads fastest at a time."""
INTEGER, DECIMAL, TEXT, INTEGER_OR_TEXT, KEPT = range(5)
"""Kinds of arguments, and what is added where one is kept."""
NAMES, IDS, PHASES, CATEGORIES, TEXTS = range(5)
"""What the scanner numbers."""
Numbering = Callable[[Any], int]
"""A value → its code."""


def is_used() -> bool:
    """Whether the native reader is installed and not turned off."""
    return tracediff_native is not None and os.environ.get(SWITCH, "").lower() not in OFF


class Plain(EventColumns, kw_only=True):
    """The plain events of a chunk, as the scanner numbers them: times are MISSING where absent, codes −1.

    Attributes:
        reader: that numbered them. id: int64[n], MISSING where absent. has: bool[n], whether the event has arguments.
        arguments: number → (rows int32[k] in the chunk, values).
    """

    reader: PlainReader
    id: Int64
    has: Bools
    arguments: dict[int, tuple[Codes, AnyArray]]


class PlainReader(Struct, dict=True):
    """Reads plain events of one file, and translates the scanner's numbers.

    Attributes:
        keeps: whether complete events keep an argument of this name.
        names: of the arguments, by number.
    """

    keeps: Callable[[str], bool]
    names: list[str] = []

    def __post_init__(self) -> None:
        ask = partial(_argument_flags, self.keeps, self.names)
        self._scanner = tracediff_native.Scanner(ask, _is_call, int.from_bytes(os.urandom(8)))
        self._pieces: tuple[list[bytes], ...] = self._scanner.pieces()
        self._known = [np.full(64, -1, np.int32) for _ in self._pieces]

    def scan(self, text: bytes, start: int, is_list: bool) -> tuple[Plain | None, int, int]:
        """(the plain events from ``start`` on, the position of the first other one, that behind it).

        The first position is the length of ``text`` if it is a JSON list and all its events are plain; an event counts
        as another one if none begins behind it. The second position is −1 where it is not clear, and outside a list.
        """
        count, position, end, times, codes, has, arguments = self._scanner.scan(text, start, is_list)
        if not count:
            return None, position, end
        ts, dur, flow = (np.frombuffer(column, np.int64) for column in times)
        plain = Plain(
            ts,
            dur,
            *(np.frombuffer(column, np.int32) for column in codes),
            reader=self,
            id=flow,
            has=np.frombuffer(has, np.bool_),
            arguments={k: self._argument(k, *pair) for k, pair in arguments.items()},
        )
        return plain, position, end

    def _argument(self, number: int, rows: bytearray, values: bytearray) -> tuple[Codes, AnyArray]:
        kind = _kind(self.names[number])
        dtype = {INTEGER: np.int64, DECIMAL: np.float64}.get(kind, np.int32)
        return np.frombuffer(rows, np.int32), np.frombuffer(values, dtype)

    def codes(self, what: int, numbers: Codes, code: Numbering, absent: Any = None) -> Codes:
        """int32 codes of the scanner's ``numbers``, given by ``code`` in order of first appearance."""
        pieces, code_of_piece = self._pieces[what], self._known[what]
        if len(code_of_piece) <= len(pieces):
            code_of_piece = self._known[what] = np.concatenate((code_of_piece, np.full(len(pieces) + 1, -1, np.int32)))
        out: Codes = code_of_piece[numbers + 1]  # the first place is that of absent ones
        if len(out) and out.min() < 0:
            for number in _in_order(numbers[out < 0]).tolist():
                code_of_piece[number + 1] = code(absent if number < 0 else _value(what, pieces[number]))
            out = code_of_piece[numbers + 1]
        return out

    def integers(self, numbers: Codes) -> Int64:
        """int64 of whole numbers that were numbered as texts."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        return int64_of([int(self._pieces[TEXTS][k]) for k in distinct.tolist()])[inverse]


def _in_order(numbers: Codes) -> Codes:
    """The distinct ones of ``numbers`` ≥ −1, in order of first appearance."""
    first = np.full(int(numbers.max()) + 2, len(numbers))
    first[numbers[::-1] + 1] = np.arange(len(numbers))[::-1]
    first = first[first < len(numbers)]
    first.sort()
    ordered: Codes = numbers[first]
    return ordered


def _value(what: int, piece: bytes) -> Any:
    if what == TEXTS:
        return piece
    if what == IDS:
        return msgspec.json.decode(piece) if piece.startswith(b'"') else int(piece)
    return msgspec.json.decode(b'"%s"' % piece) if b"\\" in piece else piece.decode()


def _kind(name: str) -> int:
    if may_be_text(name):
        return INTEGER_OR_TEXT
    return {int: INTEGER, float: DECIMAL, str: TEXT}[kind_of(name)]


def _argument_flags(is_kept: Callable[[str], bool], names: list[str], key: bytes) -> int:
    """Of a new argument: its kind, and whether it is kept; −1 where it is for Python to read."""
    if len(names) >= bounds.ARGUMENTS or not key.isascii():
        return -1
    name = key.decode()
    if UNFIT_NAME.search(name):
        return -1
    names.append(name)
    return _kind(name) + KEPT * is_kept(OTHER_SPELLINGS.get(name, name))


def _is_call(category: bytes) -> bool:
    name = _value(CATEGORIES, category)
    return cat.RENAMED.get(name, name) in CALL_CATEGORIES


def argument_columns(plain: Plain, rows: dict[int, Int64], category: Codes, text_code: Numbering) -> dict[int, Columns]:
    """Of each category, the columns of its arguments, as long as its ``rows``.

    Args:
        category: int32[n]; events that are in none of ``rows`` are left out. text_code: gives the codes of text
            arguments.
    """
    reader, out = plain.reader, {code: Columns() for code in rows}
    place = all_none(len(category))
    for members in rows.values():
        place[members] = np.arange(len(members))
    for number, (events, values) in plain.arguments.items():
        kind = _kind(reader.names[number])
        places, codes = place[events], category[events]
        for code in np.flatnonzero(np.bincount(codes[places >= 0])).tolist():
            some = np.flatnonzero((codes == code) & (places >= 0))
            mine = values[some]
            if kind == TEXT or (kind == INTEGER_OR_TEXT and code in cat.CALLS):
                mine = reader.codes(TEXTS, mine, text_code) - np.int32(1)
            elif kind == INTEGER_OR_TEXT:
                mine = reader.integers(mine)
            column = np.full(len(rows[code]), ABSENT_OF[mine.dtype.type], mine.dtype)
            column[places[some]] = mine
            out[code][reader.names[number]] = column
    return {code: respelled(columns) for code, columns in out.items()}
