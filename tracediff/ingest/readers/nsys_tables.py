"""The traces in a database of Nsight Systems.

Each process with work on a GPU is a rank of its own. NVTX ranges that PyTorch's ``emit_nvtx`` wrote are operators, the
others annotations.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct, field

from tracediff import bounds
from tracediff.arrays import MISSING, Int64, int64_of, tuples
from tracediff.errors import NotATrace, TracediffError
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.json.arguments import json_text
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.trace import Device, Trace, TraceMeta
from tracediff.ingest.model.unread import note_overhead, shortened
from tracediff.ingest.readers.builder import THREAD_BITS, TIMES, TraceBuilder
from tracediff.ingest.readers.database import STRINGS, Database, open_database
from tracediff.patterns import NAMES_KEPT
from tracediff.runtimes import (
    ARGUMENT,
    CONTEXT_SYNC,
    CUDA,
    EVENT_SYNC,
    STREAM_SYNC,
    STREAM_WAIT,
    collective_of_scope,
)

RANGES = "NVTX_EVENTS"
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
    before, separator, digits = text.rpartition(mark)
    is_number = separator and digits.isdecimal() and digits.isascii() and len(digits) <= LONGEST_NUMBER
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


KERNELS, COPIES, MEMSETS, CALLS, SYNCS, GRAPHS = (
    f"CUPTI_ACTIVITY_KIND_{kind}"
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION", "GRAPH_TRACE")
)
DEVICES, OVERHEAD = "TARGET_INFO_GPU", "PROFILER_OVERHEAD"
READ = {KERNELS, COPIES, MEMSETS, CALLS, SYNCS, GRAPHS, RANGES, STRINGS, DEVICES, OVERHEAD}
EVENTS = re.compile(
    r"CUPTI_|NVTX_EVENTS|OSRT_API|SCHED_EVENTS|COMPOSITE_EVENTS|CU(?:DNN|BLAS)_EVENTS|MPI_|OPENACC_|GPU_"
)
"""Tables of events; those that are not read are named in a health note."""
OF_DEVICE = (KERNELS, COPIES, MEMSETS, GRAPHS)

VERSION = re.compile(r"_v\d+$")
"""What nsys appends to the names of calls."""
DIRECTIONS = (
    "",
    "HtoD",
    "DtoH",
    "HtoA",
    "AtoH",
    "AtoA",
    "AtoD",
    "DtoA",
    "DtoD",
    "HtoH",
    "PtoP",
    "HtoD",
    "DtoH",
    "DtoD",
)
"""Of the kinds of copies, by CUPTI's number."""
MEMORIES = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")
SYNC_NAMES = ("", EVENT_SYNC, STREAM_WAIT, STREAM_SYNC, CONTEXT_SYNC)
"""Of the kinds of waits, by CUPTI's number."""


def traces_of(file: TraceFile, path: Path) -> Iterator[tuple[Trace, bool]]:
    """(the events of each rank in the database at ``path``, whether it is the last): the processes with work on a
    device, in order of device. Only that of ``file.part`` if it has one.

    Raises:
        TracediffError: the database is damaged, or has more ranks than its size allows.
    """
    with open_database(file, path) as database:
        _check(database)
        processes: list[int | None] = [*_processes(database)] or [None]
        ranks = [int(file.part.removeprefix("rank"))] if file.part else list(range(len(processes)))
        if ranks[-1] >= len(processes):
            raise TracediffError(file, "no such rank in the database", "read it again: it has changed")
        for rank in ranks:
            part = f"rank{rank}" if len(processes) > 1 else ""
            yield ProcessEvents(database, processes[rank]).trace(file.replace(part=part)), rank == ranks[-1]


def _check(database: Database) -> None:
    if not {*OF_DEVICE, CALLS, RANGES} & database.columns.keys():
        reason = "an SQLite database, but no export of Nsight Systems"
        raise NotATrace(database.file, reason, "export one: nsys export --type sqlite FILE.nsys-rep")


def _processes(database: Database) -> list[int]:
    """The global numbers of the processes with work on a device, in order of device."""
    first: dict[int, int] = {}
    for table in OF_DEVICE:
        processes, devices = database.integers(table, ("globalPid", "deviceId"))
        is_known = (processes != MISSING) & (devices != MISSING)
        unique_processes, place = np.unique(processes[is_known], return_inverse=True)
        lowest = np.full(len(unique_processes), TIMES[1])
        np.minimum.at(lowest, place, devices[is_known])
        for process, device in tuples(unique_processes, lowest):
            first[process] = min(device, first.get(process, device))
    most = min(bounds.DATABASE_RANKS, max(bounds.SMALL_DATABASE_RANKS, database.size // bounds.BYTES_PER_RANK))
    if len(first) > most:
        reason = f"{len(first):,} processes used a GPU, more than the {most} that {database.size:,} bytes may have"
        raise TracediffError(database.file, reason, "record fewer processes, or export them one by one")
    return sorted(first, key=lambda process: (first[process], process))


Condition = tuple[str, Sequence[int]]
"""A condition on rows, and its values."""


ARGUMENTS = {
    "deviceId": ARGUMENT.device,
    "streamId": ARGUMENT.stream,
    "correlationId": ARGUMENT.correlation,
    "bytes": ARGUMENT.size,
    "syncType": ARGUMENT.sync_kind,
    "eventId": ARGUMENT.awaited_event,
    "graphNodeId": "graph node id",
    "registersPerThread": "registers per thread",
}
"""Column → the argument that it is."""
PLACE = "start end deviceId streamId correlationId"


class ProcessEvents(Struct):
    """The events of a process with this global number; of all where there is none.

    Attributes:
        builder: gets them.
    """

    database: Database
    process: int | None
    builder: TraceBuilder = field(default_factory=TraceBuilder)
    notes: Notes = field(default_factory=Notes)

    def trace(self, file: TraceFile) -> Trace:
        """All of them."""
        self._add_kernels()
        self._add_copies()
        self._add_calls()
        self._add_syncs()
        self._add_overhead()
        self._add_ranges()
        _note_unread(self.database, self.notes)
        meta = TraceMeta(device_properties=_devices(self.database))
        return self.builder.trace(file, meta, self.notes, "record with nsys profile --trace cuda,nvtx")

    def _on_device(self, table: str) -> Condition:
        has_column = "globalPid" in self.database.columns.get(table, ())
        return ('"globalPid" = ?', (self.process,)) if has_column and self.process is not None else ("", ())

    def _on_threads(self) -> Condition:
        if self.process is None:
            return "", ()
        first = self.process >> THREAD_BITS << THREAD_BITS
        return '"globalTid" BETWEEN ? AND ?', (first, first + (1 << THREAD_BITS) - 1)

    def _columns(self, table: str, names: str) -> dict[str, Int64]:
        """The columns ``names`` of its rows."""
        condition = self._on_device(table) if table in (*OF_DEVICE, SYNCS) else self._on_threads()
        columns = names.split()
        return dict(zip(columns, self.database.integers(table, columns, *condition), strict=True))

    def _add(self, category: int, names: Sequence[str], columns: dict[str, Int64], **lists: Int64) -> None:
        """Add the events of ``columns``, with those of them that are arguments, and with ``lists``."""
        arguments = {argument: columns[column] for column, argument in ARGUMENTS.items() if column in columns} | lists
        span = columns["start"], columns["end"]
        self.builder.add(category, names, *span, thread=columns.get("globalTid"), arguments=arguments)

    def _add_kernels(self) -> None:
        sizes = "gridX gridY gridZ blockX blockY blockZ"
        columns = self._columns(KERNELS, f"{PLACE} demangledName {sizes} graphNodeId registersPerThread")
        grid, block = (np.stack([columns[size + axis] for axis in "XYZ"], axis=1) for size in ("grid", "block"))
        names = self.database.names(columns["demangledName"], "an unnamed kernel")
        self._add(cat.KERNEL, names, columns, **{ARGUMENT.grid: grid, ARGUMENT.block: block})
        graphs = self._columns(GRAPHS, f"{PLACE} graphId")
        graph_names = [
            f"CUDA graph {number}" if number != MISSING else "CUDA graph" for number in graphs["graphId"].tolist()
        ]
        self._add(cat.KERNEL, graph_names, graphs)

    def _add_copies(self) -> None:
        copies = self._columns(COPIES, f"{PLACE} bytes copyKind srcKind dstKind")
        kinds = tuples(copies["copyKind"], copies["srcKind"], copies["dstKind"])
        self._add(cat.MEMCPY, [_copy(*numbers) for numbers in kinds], copies)
        memsets = self._columns(MEMSETS, f"{PLACE} bytes memKind")
        names = [f"Memset ({_one_of(MEMORIES, kind, 'Unknown')})" for kind in memsets["memKind"].tolist()]
        self._add(cat.MEMSET, names, memsets)

    def _add_calls(self) -> None:
        columns = self._columns(CALLS, "start end globalTid correlationId nameId")
        numbers, place = np.unique(columns["nameId"], return_inverse=True)
        registered = self.database.names(numbers, "an unnamed call")
        names = np.array([VERSION.sub("", name) for name in registered], object)
        runtime, driver = map(cat.KNOWN.index, CUDA.calls)
        is_driver = np.array([name[:2] == "cu" and name[:4] != "cuda" for name in names], bool)[place]
        for category, mine in ((runtime, ~is_driver), (driver, is_driver)):
            self._add(category, names[place[mine]].tolist(), {name: column[mine] for name, column in columns.items()})

    def _add_syncs(self) -> None:
        columns = self._columns(SYNCS, f"{PLACE} syncType eventId")
        names = [_one_of(SYNC_NAMES, kind, "") or "Sync" for kind in columns["syncType"].tolist()]
        self._add(self.builder.categories[CUDA.syncs], names, columns)

    def _add_overhead(self) -> None:
        columns = self._columns(OVERHEAD, "start end globalTid nameId")
        names = self.database.names(columns["nameId"], "unnamed work")
        is_timed = (columns["start"] > 0) & (columns["end"] > columns["start"])
        note_overhead(self.notes, (columns["end"] - columns["start"])[is_timed])
        self._add(self.builder.categories[cat.OVERHEAD], names, columns)

    def _add_ranges(self) -> None:
        where, values = self._on_threads()
        types = f'"eventType" IN ({PUSH_POP}, {START_END})'
        columns = "start", "end", "globalTid", "textId", "eventType"
        (start, end, thread, text_id, kind), texts = self.database.integers_and_text(
            RANGES, columns, "text", f"{types} AND {where}" if where else types, values
        )
        texts = [text or name for text, name in zip(texts, self.database.names(text_id, ""), strict=True)]
        is_open = end == MISSING
        self.notes.add("open-ranges", "NVTX ranges that do not end in the recording were dropped", is_open.sum())
        parsed = {text: _parsed(text) for text in dict.fromkeys(texts)}
        rows = [parsed[text] for text in texts]
        is_op = np.array([row[1] for row in rows], bool) & (kind == PUSH_POP)
        for category, mine in ((cat.CPU_OP, is_op & ~is_open), (cat.ANNOTATION, ~is_op & ~is_open)):
            some = [row for row, is_mine in zip(rows, mine.tolist(), strict=True) if is_mine]
            self.builder.add(
                category,
                [row[0] for row in some],
                start[mine],
                end[mine],
                thread=thread[mine],
                arguments={
                    "Sequence number": int64_of([row[2] for row in some]),
                    "External id": int64_of([row[3] for row in some]),
                    "Input Dims": [row[4] for row in some],
                },
            )


def _copy(kind: int, source: int, target: int) -> str:
    """A copy's name as Kineto writes it."""
    memories = f"({_one_of(MEMORIES, source, 'Unknown')} -> {_one_of(MEMORIES, target, 'Unknown')})"
    return " ".join(filter(None, ("Memcpy", _one_of(DIRECTIONS, kind, ""), memories)))


def _one_of(names: Sequence[str], number: int, otherwise: str) -> str:
    return names[number] if 0 <= number < len(names) else otherwise


def _devices(database: Database) -> tuple[Device, ...]:
    numbers, names = database.integers_and_text(DEVICES, ("id",), "name")
    devices = {(number, name) for number, name in zip(numbers[0].tolist(), names, strict=True) if name}
    return tuple(Device(number, name) for number, name in sorted(devices) if number != MISSING)


def _note_unread(database: Database, notes: Notes) -> None:
    others = sorted(name for name in database.columns if EVENTS.match(name) and name not in READ)
    if filled := [name for name in others if database.has_rows(name)]:
        notes.add("unread-tables", f"tables of the database that are not read: {shortened(filled)}", len(filled))
