"""An SQLite file of unknown origin: opened read-only, with limits, and read a column at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from operator import index
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from tracediff.errors import TracediffError
from tracediff.ingest.names import bounded
from tracediff.ingest.source import TraceFile, Unpacked
from tracediff.ingest.times import MISSING, Int64
from tracediff.temporary import temporary_folder

MAGIC = b"SQLite format 3\0"
LONGEST_CELL = 1 << 20
"""Bytes of a value; a longer one is an error of SQLite."""
ROWS = 1 << 16
"""Rows that are fetched at a time."""
COPIED = 1 << 22


class Database:
    """The tables of an SQLite file. Errors of SQLite become one line.

    Attributes:
        columns: table → its columns; without views and virtual tables, whose rows would be computed.
    """

    def __init__(self, file: TraceFile, connection: sqlite3.Connection) -> None:
        self.file = file
        self._connection = connection
        self.columns = {
            text_of(name): self._columns_of(text_of(name))
            for name, sql in self.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
            if text_of(sql)[:12].upper() == "CREATE TABLE"
        }

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            TracediffError: the file is damaged.
        """
        try:
            cursor = self._connection.execute(query, tuple(values))
            while batch := cursor.fetchmany(ROWS):
                yield from batch
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise _damaged(self.file, error) from None

    def integers(self, table: str, columns: Sequence[str], where: str = "", values: Sequence[Any] = ()) -> list[Int64]:
        """Each of ``columns`` as int64[n] in order of rows, MISSING where a value, or the whole column, is absent.

        Args:
            where: a condition on the rows, with ``?`` for ``values``.
        """
        known = self.columns.get(table, ())
        if not known:
            return [np.empty(0, np.int64) for _ in columns]
        present = [c for c in columns if c in known]
        behind = f'FROM "{table}" {f"WHERE {where}" if where else ""}'
        try:
            found = self._cells([f'"{c}"' for c in present], behind, values)
        except TypeError:  # a cell that is no whole number: the slower way makes it one
            found = self._cells([f'ifnull(CAST("{c}" AS INTEGER), {MISSING})' for c in present], behind, values)
        except OverflowError as error:
            raise _damaged(self.file, error) from None
        by_name = dict(zip(present, found.T, strict=True))
        absent = np.full(len(found), MISSING, np.int64)
        return [np.ascontiguousarray(by_name.get(c, absent)) for c in columns]

    def _cells(self, asked: Sequence[str], behind: str, values: Sequence[Any]) -> Int64:
        """int64[rows, columns].

        Raises:
            TypeError: a cell is no whole number.
        """
        wide = len(asked) or 1
        parts: list[Int64] = []
        try:
            cursor = self._connection.execute(f"SELECT {', '.join(asked) or MISSING} {behind}", tuple(values))
            while batch := cursor.fetchmany(ROWS):
                cells = np.fromiter(map(index, chain.from_iterable(batch)), np.int64, len(batch) * wide)
                parts.append(cells.reshape(-1, wide))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _damaged(self.file, error) from None
        return np.concatenate(parts) if parts else np.empty((0, wide), np.int64)

    def texts(self, table: str, key: str, value: str, keys: Int64) -> dict[int, str]:
        """The text ``value`` of each of ``keys``; without those that the table lacks."""
        if not {key, value} <= set(self.columns.get(table, ())):
            return {}
        found: dict[int, str] = {}
        wanted = [k for k in np.unique(keys).tolist() if k != MISSING]
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            query = f'SELECT "{key}", "{value}" FROM "{table}" WHERE "{key}" IN ({",".join("?" * len(some))})'
            found.update((k, text_of(text)) for k, text in self.rows(query, some) if isinstance(k, int))
        return found

    def _columns_of(self, table: str) -> tuple[str, ...]:
        quoted = table.replace('"', '""')
        return tuple(text_of(row[1]) for row in self.rows(f'PRAGMA table_info("{quoted}")'))


@contextmanager
def open_database(file: TraceFile, unpacked: Unpacked) -> Iterator[Database]:
    """The database in ``file``; its ``unpacked`` bytes are copied to a temporary file if they are not stored so.

    Raises:
        TracediffError: it is damaged, or cannot be copied.
    """
    if unpacked.is_stored:
        with _connected(file, Path(file.path)) as database:
            yield database
        return
    with temporary_folder() as folder:
        path = folder / "database"
        with open(path, "wb") as copy:
            while part := unpacked.read(COPIED):
                copy.write(part)
        with _connected(file, path) as database:
            yield database


@contextmanager
def _connected(file: TraceFile, path: Path) -> Iterator[Database]:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise _damaged(file, error) from None
    with closing(connection):
        connection.text_factory = bytes  # text is decoded where it is used
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_CELL)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise _damaged(file, error) from None
        yield Database(file, connection)


def text_of(value: Any) -> str:
    """The text of a cell, in bounded length."""
    return bounded(value.decode(errors="replace") if isinstance(value, bytes) else str(value))


def _damaged(file: TraceFile, error: Exception) -> TracediffError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return TracediffError(
        str(file), f"the database cannot be read ({reason})", "export it again: nsys export --type sqlite"
    )
