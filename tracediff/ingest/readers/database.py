"""An SQLite file of unknown origin: opened read-only and read a column at a time, within limits that follow from its
size. Pages may refer to each other in any way, so that a small file has any number of rows; SQLite does not notice.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from itertools import chain, islice
from operator import index
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from tracediff.arrays import MISSING, Int64, zeros
from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile, Unpacked, stored_size
from tracediff.ingest.model.names import bounded
from tracediff.process.temporary import temporary_folder

COPIED = 1 << 22
LONGEST_CELL = 1 << 20
"""Bytes of a value; a longer one is an error of SQLite."""
WORK, WORK_PER_BYTE = 1 << 20, 64
"""Instructions of SQLite that reading a file may take: for each rank, a row of 40 bytes or more takes 4 if it is left
out, and one more for each column if it is read.
"""
CHECKED = 1 << 14
"""Instructions after which the limit is checked."""
SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA query_only = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8000",  # KB; the file asks for another one
    f"PRAGMA hard_heap_limit = {1 << 27}",
)
REMEDY = "export it again: nsys export --type sqlite"


STRINGS = "StringIds"
"""The table of the texts that others name by their number."""


class Database:
    """The tables of an SQLite file. Errors of SQLite become one line.

    Attributes:
        size: bytes of the file.
        columns: table → its columns; without views and virtual tables, whose rows would be computed.
    """

    def __init__(self, file: TraceFile, connection: sqlite3.Connection, size: int) -> None:
        self.file = file
        self.size = size
        self._connection = connection
        self._work = 0
        connection.set_progress_handler(self._is_too_much, CHECKED)
        self.columns = {
            text_of(name): self._columns_of(text_of(name))
            for name, sql in self.rows("SELECT name, sql FROM sqlite_master NOT INDEXED WHERE type = 'table'")
            if text_of(sql)[:12].upper() == "CREATE TABLE"
        }

    def _is_too_much(self) -> bool:
        self._work += CHECKED
        return self._work > WORK + WORK_PER_BYTE * self.size

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, which reads a table once and sorts nothing.

        Raises:
            TracediffError: the file is damaged, or has more rows than its bytes can hold.
        """
        try:
            cursor = self._connection.execute(query, tuple(values))
            wide = len(cursor.description or ()) or 1
            yield from islice(cursor, self.size // wide)  # a value takes a byte or more
            if cursor.fetchone():
                raise self._unbounded()
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            if self._work > WORK + WORK_PER_BYTE * self.size:
                raise self._unbounded() from None
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise TracediffError(self.file, f"the database cannot be read ({reason})", REMEDY) from None

    def integers(self, table: str, columns: Sequence[str], where: str = "", values: Sequence[Any] = ()) -> list[Int64]:
        """Each of ``columns`` as int64[n] in order of rows, MISSING where a value, or the whole column, is absent.

        Args:
            where: a condition on the rows, with ``?`` for ``values``.
        """
        return self.integers_and_text(table, columns, "", where, values)[0]

    def integers_and_text(
        self, table: str, columns: Sequence[str], text: str, where: str = "", values: Sequence[Any] = ()
    ) -> tuple[list[Int64], list[str]]:
        """(`integers` of ``columns``, the column ``text`` of the same rows: empty where a value, or the column, is
        absent).
        """
        existing = self.columns.get(table, ())
        if not existing:
            return [zeros(0) for _ in columns], []
        present = [c for c in columns if c in existing]
        of_text = _quoted(text) if text in existing else "NULL"
        source = f"{of_text} FROM {_quoted(table)} NOT INDEXED {f'WHERE {where}' if where else ''}"
        try:
            numbers, texts = self._cells([_quoted(c) for c in present], source, values)
        except TypeError:  # a cell that is not a whole number: the slower way makes it one
            whole = [f"ifnull(CAST({_quoted(c)} AS INTEGER), {MISSING})" for c in present]
            numbers, texts = self._cells(whole, source, values)
        by_name = dict(zip(present, numbers.T, strict=True))
        absent = np.full(len(numbers), MISSING, np.int64)
        return [np.ascontiguousarray(by_name.get(c, absent)) for c in columns], texts

    def _cells(self, expressions: Sequence[str], source: str, values: Sequence[Any]) -> tuple[Int64, list[str]]:
        """(int64[rows, columns], the text behind them of each row).

        Raises:
            TypeError: a cell of a number is not a whole number.
        """
        texts: list[str] = []
        rows = self.rows(f"SELECT {', '.join((*expressions, source))}", values)
        numbers = map(index, chain.from_iterable(self._without_text(rows, texts)))
        try:
            cells = np.fromiter(numbers, np.int64)
        except OverflowError as error:
            raise TracediffError(self.file, f"the database cannot be read ({error})", REMEDY) from None
        return cells.reshape(len(texts), len(expressions)), texts

    def _without_text(self, rows: Iterator[tuple[Any, ...]], texts: list[str]) -> Iterator[Sequence[Any]]:
        """``rows`` without their last column, whose texts are appended to ``texts``."""
        remaining = self.size
        for *numbers, text in rows:
            if text is None:
                texts.append("")
            else:
                texts.append(text_of(text))
                remaining -= len(texts[-1])
                if remaining < 0:
                    raise self._unbounded()
            yield numbers

    def names(self, numbers: Int64, otherwise: str) -> list[str]:
        """The texts that events refer to by ``numbers`` of the table `STRINGS`; ``otherwise`` where it lacks one."""
        return [self._strings.get(number, otherwise) for number in numbers.tolist()]

    @cached_property
    def _strings(self) -> dict[int, str]:
        if not {"id", "value"} <= set(self.columns.get(STRINGS, ())):
            return {}
        (numbers,), texts = self.integers_and_text(STRINGS, ("id",), "value")
        return dict(zip(numbers.tolist(), texts, strict=True))

    def has_rows(self, table: str) -> bool:
        """Whether ``table`` has any row."""
        return any(True for _ in self.rows(f"SELECT 1 FROM {_quoted(table)} NOT INDEXED LIMIT 1"))

    def _columns_of(self, table: str) -> tuple[str, ...]:
        return tuple(text_of(row[1]) for row in self.rows(f"PRAGMA table_info({_quoted(table)})"))

    def _unbounded(self) -> TracediffError:
        return TracediffError(self.file, f"the database has more rows than {self.size:,} bytes can hold", REMEDY)


def _quoted(name: str) -> str:
    """``name`` as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def database_path(file: TraceFile, unpacked: Unpacked) -> Iterator[Path]:
    """Where the bytes of the database in ``file`` lie: in a temporary file, if they are not stored so.

    Raises:
        TracediffError: rows of it lie in another file, or it cannot be unpacked.
    """
    for suffix in ("-wal", "-journal"):
        companion = TraceFile(file.path, file.member + suffix) if file.member else TraceFile(_real(file.path) + suffix)
        if stored_size(companion):
            reason = f"a part of the database lies in {companion.name}"
            raise TracediffError(file, reason, f'merge it: sqlite3 {file.name} "PRAGMA journal_mode = DELETE"')
    if unpacked.is_stored:
        yield Path(file.path)
        return
    with temporary_folder() as folder:
        path = folder / "database"
        with open(path, "wb") as copy:
            while part := unpacked.read(COPIED):
                copy.write(part)
        yield path


@contextmanager
def open_database(file: TraceFile, path: Path) -> Iterator[Database]:
    """The database of ``file``, whose bytes lie at ``path``.

    Raises:
        TracediffError: it is damaged.
    """
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        with closing(connection):
            connection.text_factory = bytes  # text is decoded where it is used
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for setting in SETTINGS:
                connection.execute(setting)
            yield Database(file, connection, os.path.getsize(path))
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: SQLite's message quotes the file
        raise TracediffError(file, f"the database cannot be read ({error})", REMEDY) from None


def _real(path: str) -> str:
    return path if "://" in path else os.path.realpath(path)  # SQLite writes beside the file that a link leads to


def text_of(value: Any) -> str:
    """The text of a cell, in bounded length."""
    return bounded(value.decode(errors="replace") if isinstance(value, bytes) else str(value))
