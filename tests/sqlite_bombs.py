"""Small SQLite files that no scan of their rows ends, or fits into memory: their pages refer to each other as no
database's do.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from build_trace import kernel, op, step
from nsys_file import NsysFile

PAGE = 4096
DEPTH, FAN = 14, 400
"""Levels of interior pages, and children of each: 400 ** 14 leaves."""
INTERIOR, LEAF = 5, 13
"""Types of pages of tables."""
LONG, HERE = 60_000, (PAGE - 12) * 32 // 255 - 23
"""Bytes of a text that lies on other pages (more than the file has is an error), and of its row in the cell."""
ROWS = 7
"""Such rows on a page."""


def varint(number: int) -> bytes:
    """SQLite's number of seven bits a byte."""
    groups = [number & 127]
    while number := number >> 7:
        groups.append(number & 127 | 128)
    return bytes(reversed(groups))


def record(*values: int | str | None) -> bytes:
    """A row as it is stored."""
    types, body = b"", b""
    for value in values:
        if value is None:
            types += varint(0)
        elif isinstance(value, int):
            types += varint(6)
            body += value.to_bytes(8, "big")
        else:
            types += varint(13 + 2 * len(value))
            body += value.encode()
    return varint(len(types) + 1) + types + body


def cell(rowid: int, payload: bytes, overflow: int = 0) -> bytes:
    """A row of a table; of one made by `long_text` only what lies in the cell, and then the page ``overflow``."""
    size = len(payload)
    if size > PAGE - 35:
        assert (size - HERE) % (PAGE - 4) == 0
        payload = payload[:HERE] + struct.pack(">I", overflow)
    return varint(size) + varint(rowid) + payload


def long_text(row: Callable[[str], bytes], text: str) -> bytes:
    """``row`` of ``text`` and spaces behind it, so many that no more than `HERE` bytes lie in its cell."""
    return row(text + " " * (-(len(row(text)) - HERE) % (PAGE - 4)))


def page(kind: int, cells: Sequence[bytes], right: int = 0, before: bytes = b"") -> bytes:
    """A page of a table with ``cells``, behind the bytes ``before``."""
    content, places = b"", []
    for one in cells:
        content = one + content
        places.append(PAGE - len(content))
    head = struct.pack(">BHHHB", kind, 0, len(cells), PAGE - len(content), 0)
    head = before + head + (struct.pack(">I", right) if kind == INTERIOR else b"")
    head += b"".join(struct.pack(">H", place) for place in places)
    assert len(head) + len(content) <= PAGE
    return head.ljust(PAGE - len(content), b"\0") + content


def interior(child: int, right: int | None = None, fan: int = FAN) -> bytes:
    """A page whose children are all ``child``, but the last if ``right`` is given."""
    cells = [struct.pack(">I", child) + varint(min(n + 1, 127)) for n in range(fan)]
    return page(INTERIOR, cells, right or child)


class Pages:
    """The pages of a database, numbered from 1."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]

    def add(self, new: bytes) -> int:
        """Its number."""
        self.pages.append(new)
        return len(self.pages)

    def root(self, table: str) -> int:
        """The number of the first page of ``table``."""
        ((number,),) = rows_of(self.content, f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'")
        return int(number)

    def fan_out(self, leaf: int, depth: int = DEPTH) -> int:
        """The number of the highest of ``depth`` levels of pages above ``leaf``."""
        for _ in range(depth):
            leaf = self.add(interior(leaf))
        return leaf

    def endless(self, table: str, leaf: bytes | None = None) -> None:
        """Repeat the rows of ``table``, or those of ``leaf``, without end."""
        root = self.root(table)
        top = self.fan_out(self.add(leaf or self.pages[root - 1]))
        self.pages[root - 1] = self.pages[top - 1]

    def leaves(self, cells: Sequence[bytes]) -> tuple[list[bytes], int]:
        """(the cells of a page above new leaves with ``cells``, the number of the last leaf)."""
        above = [
            (self.add(page(LEAF, cells[n : n + ROWS])), min(n + ROWS, len(cells)) - 1)
            for n in range(0, len(cells), ROWS)
        ]
        return [struct.pack(">I", leaf) + varint(last) for leaf, last in above[:-1]], above[-1][0]

    def text_in_a_circle(self) -> int:
        """The number of a page of text that continues on itself."""
        number = len(self.pages) + 1
        return self.add(struct.pack(">I", number) + b"x" * (PAGE - 4))

    def bytes(self) -> bytes:
        """The file."""
        head = bytearray(self.pages[0])
        struct.pack_into(">I", head, 28, len(self.pages))
        return b"".join((bytes(head), *self.pages[1:]))


def rows_of(content: bytes, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query in the database ``content``."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        return connection.execute(query).fetchall()


def _whole(*more: str) -> Pages:
    """An export with one event of each kind."""
    file = NsysFile(":memory:")
    file.add_process(100, [step(1, 0, 900), op("aten::mm", 1, 50), kernel("gemm", 20, 30, 1)])
    for statement in more:
        file.connection.execute(statement)
    return Pages(file.connection.serialize())


def endless_kernels() -> bytes:
    """The rows of a table that is read."""
    pages = _whole()
    pages.endless("CUPTI_ACTIVITY_KIND_KERNEL")
    return pages.bytes()


def endless_names() -> bytes:
    """The rows of the table of names."""
    pages = _whole()
    pages.endless("StringIds")
    return pages.bytes()


def endless_marks() -> bytes:
    """Rows that are left out, so that none is ever returned."""
    pages = _whole()
    pages.endless("NVTX_EVENTS", page(LEAF, [cell(1, record(1, 2, 33, "a mark", 100 << 24, None))]))
    return pages.bytes()


def endless_schema() -> bytes:
    """The rows that describe the tables: an index without a definition may come any number of times."""
    pages = _whole("CREATE TABLE unique_ones (a UNIQUE)")
    rows = rows_of(pages.content, "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
    tables = [cell(n, record(*row)) for n, row in enumerate(rows, 1) if row[4]]
    (index,) = (cell(99, record(*row)) for row in rows if not row[4])
    first, endless = pages.add(page(LEAF, tables)), pages.fan_out(pages.add(page(LEAF, [index])), 12)
    only = [struct.pack(">I", first) + varint(50)]
    pages.pages[0] = page(INTERIOR, only, endless, before=pages.pages[0][:100])
    return pages.bytes()


def huge_schema() -> bytes:
    """Many tables whose long definitions lie on the same pages."""
    pages = _whole()
    columns = ",".join(f"c{n:04}{'x' * 440}" for n in range(1900))
    whole = long_text(lambda sql: record("table", "t000", "t000", 2, sql), f"CREATE TABLE t000({' ' * PAGE}{columns})")
    rest, first = whole[HERE:], len(pages.pages) + 1
    for at in range(0, len(rest), PAGE - 4):
        is_last = at + PAGE - 4 >= len(rest)
        pages.add(struct.pack(">I", 0 if is_last else len(pages.pages) + 2) + rest[at : at + PAGE - 4])
    cells = [cell(n, whole, first).replace(b"t000", b"t%03d" % n) for n in range(600)]
    top, right = pages.leaves(cells)
    pages.pages[0] = page(INTERIOR, top, right, before=pages.pages[0][:100])
    return pages.bytes()


def shared_texts() -> bytes:
    """Endless rows whose long text lies on one page."""
    pages = _whole()
    row = long_text(lambda text: record(1000, 2000, 59, text, 100 << 24 | 1, None), "x" * LONG)
    circle = pages.text_in_a_circle()
    pages.endless("NVTX_EVENTS", page(LEAF, [cell(n, row, circle) for n in range(ROWS)]))
    return pages.bytes()


def slow_rows() -> bytes:
    """Endless rows of which each takes SQLite long, in one instruction: what is asked for lies behind a long text."""
    pages = _whole("DROP TABLE NVTX_EVENTS", "CREATE TABLE NVTX_EVENTS (text, eventType, start, end, globalTid)")
    row = long_text(lambda text: record(text, 33, 1, 2, 100 << 24), "x" * LONG)
    circle = pages.text_in_a_circle()
    pages.endless("NVTX_EVENTS", page(LEAF, [cell(n, row, circle) for n in range(ROWS)]))
    return pages.bytes()


def many_processes() -> bytes:
    """More ranks than anyone has."""
    file = NsysFile(":memory:")
    for pid in range(500):
        file.add_process(pid + 1, [kernel("gemm", 20, 30, 1)])
    return file.connection.serialize()


BOMBS: dict[str, Callable[[], bytes]] = {
    made.__name__: made
    for made in (
        endless_kernels,
        endless_names,
        endless_marks,
        endless_schema,
        huge_schema,
        shared_texts,
        slow_rows,
        many_processes,
    )
}
