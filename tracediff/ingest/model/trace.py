"""`Trace`: one file's events as columns; moving them to other categories, with their arguments; finding those of a
name.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracediff.arrays import MISSING, AnyArray, Bools, Int64, Spans, distinct, marked, sorted_by, stable_order
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Note
from tracediff.ingest.model.times import LARGEST_US
from tracediff.structs import FrozenStruct

Codes = NDArray[np.int32]
Columns = dict[str, AnyArray]
"""Name → column, of arguments or of what every event has."""
ABSENT_OF: dict[Any, Any] = {np.int64: MISSING, np.float64: float("nan"), np.int32: -1}
"""The value of an argument that an event lacks, by the type of its column."""


def is_present(column: AnyArray) -> Bools:
    """bool[n]: which events have the argument of a column."""
    present: Bools = ~np.isnan(column) if column.dtype == np.float64 else column != ABSENT_OF[column.dtype.type]
    return present


Number = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_US * 1000)]
"""Numbers of the metadata; one outside of these ranges is dropped."""


FLAGS = ("with_stack", "record_shapes", "profile_memory", "with_modules", "with_flops")
"""Options of the profiler, as the metadata spells them."""


class Distributed(FrozenStruct):
    """The ``distributedInfo`` of this process.

    Attributes:
        pg_config: its process groups as recorded, whatever their form.
    """

    rank: Rank | None = None
    world_size: Rank | None = None
    pg_config: Any = None


class Device(FrozenStruct):
    """One entry of ``deviceProperties``."""

    id: Number | None = None
    name: str = ""


class TraceMeta(FrozenStruct, rename="camel"):
    """The allow-listed top-level metadata: no other metadata is read, kept or shown.

    Attributes:
        versions: of vendors' runtimes and drivers, by their key in the file. flags: those of FLAGS that were on.
    """

    distributed_info: Distributed | None = None
    device_properties: tuple[Device, ...] = ()
    base_time_nanoseconds: Nanoseconds | None = None
    torch_version: str | None = msgspec.field(default=None, name="torch_version")
    versions: dict[str, Number] = msgspec.field(default_factory=dict)
    flags: tuple[str, ...] = ()


class Arguments(Struct):
    """The arguments of one category's events.

    Attributes:
        rows: int64[n], positions of these events in the trace's columns, ascending.
        columns: argument name → its values, of which the type says what they are: int64[n] whole numbers, float64[n]
            decimals, int32[n] codes into ``Trace.texts`` (strings as they are, lists and objects as JSON); `ABSENT_OF`
            where absent.
    """

    rows: Int64
    columns: Columns = {}

    def of_type(self, kind: Any) -> Columns:
        """The columns of whole numbers (np.int64), decimals (np.float64) or texts (np.int32)."""
        return {name: column for name, column in self.columns.items() if column.dtype == kind}


class EventColumns(Struct):
    """What every event has, in columns of equal length n.

    Attributes:
        ts: int64[n] start in ns on the trace's own clock.
        dur: int64[n] duration in ns, MISSING for events that are not complete ("ph": "X").
        name, pid, tid, phase, category: int32[n] codes.
    """

    ts: Int64
    dur: Int64
    name: Codes
    pid: Codes
    tid: Codes
    phase: Codes
    category: Codes


class Trace(EventColumns, kw_only=True):
    """One trace file, its events in the file's order.

    Attributes:
        file: where it came from.
        meta: allow-listed metadata.
        notes: health notes of reading it.
        names, categories, phases: what the codes refer to, those of ``category`` and ``phase`` int16[n] unless there
            are many; tracediff.ingest.model.categories gives the fixed ones.
        ids: what pid and tid refer to: process and thread ids as int, str or None.
        arguments: category code → its events' arguments.
        texts: strings that text arguments refer to.
        torch_functions: those of ``names`` that are Python functions of torch itself.
        library_functions: those that seem to be of Python's own library or NumPy.
    """

    file: TraceFile
    meta: TraceMeta
    notes: list[Note]
    names: list[str]
    categories: list[str]
    ids: list[int | str | None]
    phases: list[str]
    arguments: dict[int, Arguments]
    texts: list[str]
    torch_functions: frozenset[str] = frozenset()
    library_functions: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.ts)

    def names_of(self, rows: Int64) -> list[str]:
        """The name of each of the events at ``rows``."""
        return [self.names[code] for code in self.name[rows].tolist()]

    def thread(self, rows: Int64) -> Int64:
        """int32[m], or int64[m] of many ids, code of the (process, thread) of the events at ``rows``."""
        ids = len(self.ids) + 1
        code: Int64 = self.pid[rows].astype(np.int32 if ids * ids < 1 << 31 else np.int64)
        code *= ids
        code += self.tid[rows]
        return code

    def ids_of(self, thread: int) -> tuple[int | str | None, int | str | None]:
        """The ids of the process and thread that a code of `thread` is of."""
        process, number = divmod(thread, len(self.ids) + 1)
        return self.ids[process], self.ids[number]

    def complete(self, categories: Sequence[int]) -> Int64:
        """Rows of the complete events of ``categories``."""
        return np.flatnonzero(self.is_of(categories) & (self.dur >= 0))

    def spans(self, rows: Int64) -> tuple[Int64, Int64]:
        """(start, end) in ns of the complete events at ``rows``."""
        return self.ts[rows], self.ts[rows] + self.dur[rows]

    def is_of(self, categories: Sequence[int], rows: Int64 | None = None) -> Bools:
        """bool[n]: whether each event is of one of ``categories``, or bool[m] for the m events at ``rows``."""
        is_selected = np.zeros(len(self.categories), bool)
        is_selected[list(categories)] = True
        return is_selected[self.category if rows is None else self.category[rows]]

    def is_in_phase(self, phase: str) -> Bools:
        """bool[n]: whether each event is in ``phase``, such as "X"."""
        in_phase: Bools = np.array([*map(phase.__eq__, self.phases)], bool)[self.phase]
        return in_phase

    def name_matches(self, matches: Callable[[str], object], rows: Int64 | None = None) -> Bools:
        """bool[n]: whether ``matches`` is true for each event's name, or bool[m] for the m events at ``rows``; it is
        called once per name, of events at ``rows`` for theirs only.
        """
        codes = self.name if rows is None else self.name[rows]
        used = range(len(self.names)) if rows is None else np.flatnonzero(np.bincount(codes)).tolist()
        return marked([code for code in used if matches(self.names[code])], len(self.names))[codes]

    def rows_named(self, matches: Callable[[str], object], rows: Int64) -> Int64:
        """Those of ``rows`` for whose event's name ``matches`` is true."""
        return rows[self.name_matches(matches, rows)]

    def text(self, code: int) -> str:
        """The text of a code, empty for −1."""
        return self.texts[code] if code >= 0 else ""

    def integer_column(self, argument: str, *categories: int, missing: int = MISSING) -> Int64:
        """int64[n] of ``argument`` for every event, ``missing`` where an event has none or is of another category."""
        out: Int64 = self._column(argument, np.int64, categories)
        out[out == MISSING] = missing
        return out

    def text_column(self, argument: str, *categories: int) -> Codes:
        """int32[n] codes into ``texts`` of ``argument``, −1 where an event has none or is of another category."""
        codes: Codes = self._column(argument, np.int32, categories)
        return codes

    def has_texts(self, argument: str, category: int) -> bool:
        """Whether any event of ``category`` has ``argument`` as a text."""
        return category in self.arguments and argument in self.arguments[category].of_type(np.int32)

    def _column(self, argument: str, kind: Any, categories: Sequence[int]) -> Any:
        out = np.full(len(self), ABSENT_OF[kind], kind)
        for arguments in filter(None, map(self.arguments.get, categories)):
            column = arguments.columns.get(argument)
            if column is not None and column.dtype == kind:
                out[arguments.rows] = column
        return out

    def arguments_of(self, row: int) -> dict[str, Any]:
        """All arguments of the event at ``row``, by name: int, float, str (JSON text for lists). Slow: for
        single events.
        """
        arguments = self.arguments.get(int(self.category[row]))
        position = np.flatnonzero(arguments.rows == row) if arguments else ()
        if arguments is None or not len(position):
            return {}
        values = {name: column[position] for name, column in arguments.columns.items()}
        present = {name: value[0].item() for name, value in values.items() if is_present(value)[0]}
        return present | {name: self.texts[present[name]] for name in arguments.of_type(np.int32) if name in present}

    def category_code(self, name: str) -> int:
        """The code of the category ``name``, which the trace gets if it has none of this name."""
        if name not in self.categories:
            self.categories.append(name)
        return self.categories.index(name)

    def refile(self, category: Codes) -> None:
        """Give each event its new ``category`` (int32[n]), and its arguments to that one."""
        parts: dict[int, list[Arguments]] = defaultdict(list)
        for arguments in self.arguments.values():
            new = category[arguments.rows]
            for code in distinct(new).tolist():
                places = np.flatnonzero(new == code)
                columns = {name: values[places] for name, values in arguments.columns.items()}
                parts[code].append(Arguments(arguments.rows[places], columns))
        self.category = category
        self.arguments = {code: joined(parts[code]) for code in sorted(parts)}

    def rename(self, rows: Any, names: Sequence[str]) -> None:
        """Give the events at ``rows`` other names; names that no event has any longer are dropped."""
        codes = {name: code for code, name in enumerate(self.names)}
        new = [codes.setdefault(name, len(codes)) for name in names]
        name = self.name.copy()
        name[rows] = new
        every = list(codes)
        used, inverse = np.unique(name, return_inverse=True)
        self.names = [every[code] for code in used.tolist()]
        self.name = inverse.reshape(-1).astype(np.int32)

    def integers(self, argument: str) -> Int64:
        """int64[n] of an argument of any category that may be spelled as a text, MISSING where an event has none."""
        codes = self.text_column(argument, *self.arguments)
        numbers = np.full(len(self.texts) + 1, MISSING)  # the last is of no text
        for code in np.unique(codes[codes >= 0]).tolist():
            numbers[code] = _whole(self.texts[code])
        out: Int64 = np.maximum(self.integer_column(argument, *self.arguments), numbers[codes])
        return out

    def texts_of(self, argument: str, rows: Int64) -> list[str]:
        """The text argument of the events at ``rows``, empty where an event has none."""
        return list(map(self.text, self.text_column(argument, *self.arguments)[rows].tolist()))

    def set_integers(self, argument: str, rows: Any, values: Any) -> None:
        """Set the integer argument of the events at ``rows`` (int64[m], ascending) to ``values``."""
        for code in np.unique(self.category[rows]).tolist():
            mine = self.category[rows] == code
            whole = self.arguments.get(code, Arguments(rows[:0]))
            if len(new := np.setdiff1d(rows[mine], whole.rows)):
                whole = joined([whole, Arguments(new)])
            column = whole.columns.setdefault(argument, np.full(len(whole.rows), MISSING))
            column[np.searchsorted(whole.rows, rows[mine])] = values[mine]
            self.arguments[code] = whole


class EventSpans(Spans, kw_only=True):
    """Some complete events of a trace, m of them.

    Attributes:
        trace: that has them. rows: int64[m] their rows in it.
    """

    trace: Trace
    rows: Int64

    @property
    def name(self) -> Codes:
        """Codes of their names."""
        return self.trace.name[self.rows]

    @property
    def category(self) -> Codes:
        """Codes of their categories."""
        return self.trace.category[self.rows]

    def matches(self, matches: Callable[[str], object]) -> Bools:
        """bool[m]: whether ``matches`` is true for each one's name."""
        return self.trace.name_matches(matches, self.rows)


def joined(parts: Sequence[Arguments]) -> Arguments:
    """The arguments of several groups of events of one category, which may have different ones, in order of rows; of a
    name whose columns differ in type, those of the first.
    """
    rows = np.concatenate([part.rows for part in parts])
    order = stable_order(rows)
    whole = Arguments(rows[order])
    for name in sorted({name for part in parts for name in part.columns}):
        columns = [part.columns.get(name) for part in parts]
        kind = next(column.dtype for column in columns if column is not None)
        filled = [
            column
            if column is not None and column.dtype == kind
            else np.full(len(part.rows), ABSENT_OF[kind.type], kind)
            for part, column in zip(parts, columns, strict=True)
        ]
        whole.columns[name] = np.concatenate(filled)[order]
    return whole


def _whole(text: str) -> int:
    return int(text) if text.lstrip("-").isdecimal() and text.isascii() and len(text) < 19 else MISSING


class EventRecord(FrozenStruct, kw_only=True):
    """One event.

    Attributes:
        file: its file.
        name: as recorded.
        at_ns: start after the file's first event, as Perfetto counts.
        dur_ns: duration.
        place: ``GPU 0 stream 7`` or ``thread 1234``.
    """

    file: TraceFile
    name: str
    at_ns: int
    dur_ns: int
    place: str


def thread_title(tid: int | str | None) -> str:
    """``thread 1234``; a negative id of 32 bits without its sign, as Perfetto shows it."""
    return f"thread {tid + (1 << 32) if isinstance(tid, int) and -(1 << 31) <= tid < 0 else tid}"


def place_of(trace: Trace, row: int) -> str:
    """Where the event at ``row`` ran: ``GPU 0 stream 7`` or ``thread 1234``."""
    pid, tid = trace.ids[trace.pid[row]], trace.ids[trace.tid[row]]
    if int(trace.category[row]) not in cat.GPU:
        return thread_title(tid)
    arguments = trace.arguments_of(row)
    stream = str(arguments.get("stream", tid)).removeprefix("stream ")
    return f"GPU {arguments.get('device', pid)} stream {stream}"


def longest_events(trace: Trace, name: str, most: int) -> list[EventRecord]:
    """The ``most`` longest complete events called ``name``; if there are none, those whose name contains it,
    ignoring case.
    """
    codes = [i for i, n in enumerate(trace.names) if n == name] or [
        i for i, n in enumerate(trace.names) if name.lower() in n.lower()
    ]
    rows = np.flatnonzero(np.isin(trace.name, codes) & (trace.dur >= 0))
    return event_records(trace, sorted_by(rows, trace.ts, -trace.dur)[:most].tolist())


def event_records(trace: Trace, rows: Sequence[int]) -> list[EventRecord]:
    """The complete events at ``rows``."""
    timed = trace.ts[trace.dur >= 0]  # metadata events have time 0
    first = int(timed.min()) if len(timed) else 0
    return [
        EventRecord(
            file=trace.file,
            name=trace.names[trace.name[row]],
            at_ns=int(trace.ts[row]) - first,
            dur_ns=int(trace.dur[row]),
            place=place_of(trace, row),
        )
        for row in rows
    ]
