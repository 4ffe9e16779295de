"""Databases that SQLite alone would read for ever, or wrongly: a line within bounds, and nothing left behind."""

import gzip
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from build_trace import kernel, op, step
from consumption import of_children
from interrupts import heed_interrupts, of_session, reads, wait_until
from nsys_file import NsysFile, write_nsys
from rich.console import Console
from sqlite_bombs import BOMBS
from tracediff_cli.mcp_server.listing import show_sets

import tracediff
from tracediff.engine import LoadOptions
from tracediff.errors import TracediffError
from tracediff.ingest.discover import find_traces
from tracediff.ingest.read import read_trace, read_traces
from tracediff.ingest.readers import database, database_process
from tracediff.set_folder import SetFolder

linux = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
EVENTS = [step(1, 0, 900), op("aten::mm", 1, 50), op("aten::add", 60, 9), kernel("gemm", 20, 30, 1)]
SECONDS, MEMORY = 10, 300_000_000
HANGS_S = 60


@pytest.fixture
def no_hang():
    """Interrupts a test that waits for ever."""

    def hangs(*_):
        raise AssertionError(f"not within {HANGS_S} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("no_hang")
def test_a_small_file_without_end_is_a_line_within_bounds(name, tmp_path):
    path = tmp_path / "bomb.sqlite"
    path.write_bytes(BOMBS[name]())
    before, *_ = of_children(database_process.__name__)
    with pytest.raises(TracediffError, match=r"bomb\.sqlite: ") as refused:
        read_trace(str(path))
    assert "\n" not in str(refused.value)
    after, peak, _ = of_children(database_process.__name__)
    assert after - before < SECONDS
    assert peak < MEMORY
    assert os.listdir(tmp_path) == ["bomb.sqlite"]
    assert len(read_trace(str(write_nsys(tmp_path / "whole.sqlite", EVENTS)))) == len(EVENTS)


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.usefixtures("no_hang")
def test_a_signal_ends_the_reading_of_a_database(ending, code, tmp_path):
    path = tmp_path / "bomb.sqlite"
    path.write_bytes(BOMBS["endless_schema"]())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-P", "-m", "tracediff", "analyze", str(path)]
    with subprocess.Popen(
        command,
        env=os.environ | {"TMPDIR": str(scratch)},
        start_new_session=True,
        preexec_fn=heed_interrupts,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: reads(process.pid, path), "the database is open")
        process.send_signal(ending)
        assert process.wait(HANGS_S) == code
        wait_until(lambda: not of_session(process.pid), "all processes have ended")
    assert not os.listdir(scratch)


def test_a_listing_opens_no_database(tmp_path, monkeypatch):
    for name in ("a.sqlite", "b.sqlite"):
        write_nsys(tmp_path / name, EVENTS, EVENTS)

    def opened(*_arguments, **_options):
        raise AssertionError("a database was opened")

    monkeypatch.setattr(sqlite3, "connect", opened)
    monkeypatch.setattr(subprocess, "Popen", opened)
    assert [file.name for file in find_traces(str(tmp_path))] == ["a.sqlite", "b.sqlite"]
    sets = SetFolder(tmp_path)
    assert sorted(sets.names()) == [".", "a.sqlite", "b.sqlite"]
    assert len(sets.state("a.sqlite")) == 1
    console = Console(file=StringIO(), width=100)
    show_sets(sets, console)
    assert "a.sqlite" in console.file.getvalue()


INDEXES = (
    "CREATE INDEX i1 ON NVTX_EVENTS (eventType, text, globalTid)",
    "CREATE INDEX i2 ON NVTX_EVENTS (text, globalTid, eventType)",
    "CREATE INDEX i3 ON NVTX_EVENTS (start DESC)",
    "CREATE INDEX i4 ON StringIds (value)",
    "CREATE INDEX i5 ON CUPTI_ACTIVITY_KIND_KERNEL (globalPid, start DESC)",
    "ANALYZE",
)


def changed(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_indexes_change_no_name(tmp_path):
    """An index that contains what a query asks for gives its rows in another order."""
    events = [op(f"aten::op{n * 7 % 50}", 10 * n, 5, **{"Sequence number": n}) for n in range(400)] + EVENTS
    path = write_nsys(tmp_path / "nsys.sqlite", events, EVENTS)

    def named():
        return [
            (t.names[name], int(ts), int(dur))
            for t in read_traces(str(path))
            for name, ts, dur in zip(t.name, t.ts, t.dur, strict=True)
        ]

    before = named()
    changed(path, *INDEXES)
    assert named() == before


def test_tables_without_row_numbers_and_with_odd_names_are_read(tmp_path):
    path = write_nsys(tmp_path / "nsys.sqlite", EVENTS)
    changed(
        path,
        "CREATE TABLE names (id INTEGER, value TEXT, PRIMARY KEY (value, id)) WITHOUT ROWID",
        "INSERT INTO names SELECT * FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE names RENAME TO StringIds",
        """CREATE TABLE "GPU_"" UNION SELECT 'x" (a)""",
        """INSERT INTO "GPU_"" UNION SELECT 'x" VALUES (1)""",
    )
    trace = read_trace(str(path))
    assert sorted(trace.names) == ["ProfilerStep#1", "aten::add", "aten::mm", "gemm"]
    assert ["GPU_\" UNION SELECT 'x" in n.message for n in trace.notes if n.code == "unread-tables"] == [True]


def test_a_schema_that_is_not_utf_8_is_a_line(tmp_path):
    """SQLite quotes it in its message, which is then no text."""
    path = write_nsys(tmp_path / "nsys.sqlite", EVENTS)
    schema = b"CREATE TABLE StringIds"
    path.write_bytes(path.read_bytes().replace(schema, b"CREATE \xc9\xa0\xc4\xdd ".ljust(len(schema), b"x")))
    with pytest.raises(TracediffError, match=r"nsys\.sqlite: the database cannot be read"):
        read_trace(str(path))


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_database_with_a_part_in_another_file_is_refused(suffix, tmp_path):
    path = write_nsys(tmp_path / "nsys.sqlite", EVENTS)
    beside = tmp_path / f"nsys.sqlite{suffix}"
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    beside.write_bytes(b"")
    assert len(read_trace(str(path))) == len(EVENTS)
    beside.write_bytes(b"rows")
    for where in (path, link):
        with pytest.raises(TracediffError, match=f"a part of the database lies in nsys.sqlite{suffix}; merge it"):
            read_trace(str(where))
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.write(path, "nsys.sqlite")
        archive.write(beside, beside.name)
    with pytest.raises(TracediffError, match="merge it"):
        tracediff.load(str(tmp_path / "set.zip"))


def test_the_remedy_merges_a_write_ahead_log(tmp_path):
    path = write_nsys(tmp_path / "nsys.sqlite", EVENTS)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    late = "start + 5000, end + 5000, eventType, 'late', globalTid, NULL"
    writer.execute(f"INSERT INTO NVTX_EVENTS SELECT {late} FROM NVTX_EVENTS LIMIT 1")
    writer.commit()
    with pytest.raises(TracediffError, match="PRAGMA journal_mode = DELETE"):
        read_trace(str(path))
    writer.close()
    changed(path, "PRAGMA journal_mode = DELETE")
    assert "late" in read_trace(str(path)).names


def test_a_packed_database_is_unpacked_once(tmp_path, monkeypatch):
    plain = write_nsys(tmp_path / "nsys.sqlite", EVENTS, EVENTS, EVENTS)
    packed = tmp_path / "packed.sqlite.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    unpacked = []

    def counted():
        unpacked.append(packed)
        return temporary_folder()

    temporary_folder = database.temporary_folder
    monkeypatch.setattr(database, "temporary_folder", counted)
    assert len(tracediff.load(str(packed)).profiles) == 3
    assert len(unpacked) == 1


@linux
def test_one_process_reads_all_databases_of_a_thread(tmp_path):
    path = write_nsys(tmp_path / "nsys.sqlite", EVENTS, EVENTS)
    read_trace(str(path))
    whole = write_nsys(tmp_path / "one.sqlite", EVENTS)
    read_trace(str(whole))
    *_, before = of_children(database_process.__name__)
    for _ in range(3):
        assert len(read_trace(str(whole))) == len(EVENTS)
    assert of_children(database_process.__name__)[2] == before
    database_process._idle.reader._process.kill()
    database_process._idle.reader._process.wait()
    assert len(read_trace(str(whole))) == len(EVENTS)


def length(path):
    return sum(map(len, read_traces(path)))


@pytest.mark.slow
def test_databases_are_read_in_threads_workers_and_daemons(tmp_path):
    """Also where this process, which the workers are forked of, has read one itself."""
    paths = [str(write_nsys(tmp_path / f"rank{n}.sqlite", EVENTS)) for n in range(3)]
    expected = [len(EVENTS)] * 3
    assert list(map(length, paths)) == expected
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(length, paths)) == expected
    with multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn").Pool(1) as daemons:
        assert daemons.map(length, paths) == expected
    (traces,) = tracediff.engine.load_sets([str(tmp_path)], LoadOptions(jobs=2))
    assert len(traces.profiles) == 3
    assert list(map(length, paths)) == expected


@linux
def test_a_reading_process_that_dies_is_a_line(tmp_path, monkeypatch):
    path = write_nsys(tmp_path / "nsys.sqlite", EVENTS)
    read_trace(str(path))
    ask = database_process._ReadingProcess.ask

    def ask_and_kill(process, *question):
        process._process.kill()
        process._process.wait()
        ask(process, *question)

    monkeypatch.setattr(database_process._ReadingProcess, "ask", ask_and_kill)
    with pytest.raises(TracediffError, match=r"the process that read the database ended \(-9\)"):
        read_trace(str(path))


def test_rows_cannot_name_more_than_the_file_has(tmp_path):
    """A default of a column is no part of its rows."""
    file = NsysFile(tmp_path / "nsys.sqlite")
    file.add_process(100, EVENTS)
    for n in range(30):
        file.add("NVTX_EVENTS (start, end, eventType, globalTid)", n, n + 1, 59, 100 << 24)
    file.connection.execute("ALTER TABLE NVTX_EVENTS RENAME COLUMN text TO other")
    file.connection.execute(f"ALTER TABLE NVTX_EVENTS ADD COLUMN text DEFAULT '{'x' * 16_000}'")
    with pytest.raises(TracediffError, match="more rows than"):
        read_trace(str(file.close()))
