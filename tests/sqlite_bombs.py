"""Small SQLite files that no scan of their rows ends, or fits into memory: their pages refer to each other as no
database's do.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from build_trace import kernel, op, step
from nsys_file import NsysFile, write_nsys

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

    def __init__(self, path: Path) -> None:
        self.path = path
        content = path.read_bytes()
        self.pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]

    def add(self, new: bytes) -> int:
        """Its number."""
        self.pages.append(new)
        return len(self.pages)

    def root(self, table: str) -> int:
        """The number of the first page of ``table``."""
        connection = sqlite3.connect(self.path)
        ((number,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        connection.close()
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

    def write(self) -> Path:
        head = bytearray(self.pages[0])
        struct.pack_into(">I", head, 28, len(self.pages))
        self.path.write_bytes(b"".join((bytes(head), *self.pages[1:])))
        return self.path


def _whole(path: Path, *more: str) -> Pages:
    """An export with one event of each kind."""
    write_nsys(path, [step(1, 0, 900), op("aten::mm", 1, 50), kernel("gemm", 20, 30, 1)])
    connection = sqlite3.connect(path)
    for statement in more:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return Pages(path)


def endless_kernels(path: Path) -> Path:
    """The rows of a table that is read."""
    pages = _whole(path)
    pages.endless("CUPTI_ACTIVITY_KIND_KERNEL")
    return pages.write()


def endless_names(path: Path) -> Path:
    """The rows of the table of names."""
    pages = _whole(path)
    pages.endless("StringIds")
    return pages.write()


def endless_marks(path: Path) -> Path:
    """Rows that are left out, so that none is ever returned."""
    pages = _whole(path)
    pages.endless("NVTX_EVENTS", page(LEAF, [cell(1, record(1, 2, 33, "a mark", 100 << 24, None))]))
    return pages.write()


def endless_schema(path: Path) -> Path:
    """The rows that describe the tables: an index without a definition may come any number of times."""
    pages = _whole(path, "CREATE TABLE unique_ones (a UNIQUE)")
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master").fetchall()
    connection.close()
    tables = [cell(n, record(*row)) for n, row in enumerate(rows, 1) if row[4]]
    (index,) = (cell(99, record(*row)) for row in rows if not row[4])
    first, endless = pages.add(page(LEAF, tables)), pages.fan_out(pages.add(page(LEAF, [index])), 12)
    only = [struct.pack(">I", first) + varint(50)]
    pages.pages[0] = page(INTERIOR, only, endless, before=pages.pages[0][:100])
    return pages.write()


def huge_schema(path: Path) -> Path:
    """Many tables whose long definitions lie on the same pages."""
    pages = _whole(path)
    columns = ",".join(f"c{n:04}{'x' * 440}" for n in range(1900))
    whole = long_text(lambda sql: record("table", "t000", "t000", 2, sql), f"CREATE TABLE t000({' ' * PAGE}{columns})")
    rest, first = whole[HERE:], len(pages.pages) + 1
    for at in range(0, len(rest), PAGE - 4):
        is_last = at + PAGE - 4 >= len(rest)
        pages.add(struct.pack(">I", 0 if is_last else len(pages.pages) + 2) + rest[at : at + PAGE - 4])
    cells = [cell(n, whole, first).replace(b"t000", b"t%03d" % n) for n in range(600)]
    top, right = pages.leaves(cells)
    pages.pages[0] = page(INTERIOR, top, right, before=pages.pages[0][:100])
    return pages.write()


def shared_texts(path: Path) -> Path:
    """Endless rows whose long text lies on one page."""
    pages = _whole(path)
    row = long_text(lambda text: record(1000, 2000, 59, text, 100 << 24 | 1, None), "x" * LONG)
    circle = pages.text_in_a_circle()
    pages.endless("NVTX_EVENTS", page(LEAF, [cell(n, row, circle) for n in range(ROWS)]))
    return pages.write()


def slow_rows(path: Path) -> Path:
    """Endless rows of which each takes SQLite long, in one instruction: what is asked for lies behind a long text."""
    pages = _whole(path, "DROP TABLE NVTX_EVENTS", "CREATE TABLE NVTX_EVENTS (text, eventType, start, end, globalTid)")
    row = long_text(lambda text: record(text, 33, 1, 2, 100 << 24), "x" * LONG)
    circle = pages.text_in_a_circle()
    pages.endless("NVTX_EVENTS", page(LEAF, [cell(n, row, circle) for n in range(ROWS)]))
    return pages.write()


def many_processes(path: Path) -> Path:
    """More ranks than anyone has."""
    file = NsysFile(path)
    for pid in range(500):
        file.add_process(pid + 1, [kernel("gemm", 20, 30, 1)])
    return file.close()


BOMBS: dict[str, Callable[[Path], Path]] = {
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
