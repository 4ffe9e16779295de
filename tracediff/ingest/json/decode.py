"""One chunk of JSON events → parts of the columns, and the parts of a file joined into columns that grow in place."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracediff import bounds
from tracediff.arrays import MISSING, AnyArray, Bools, Int64, int64_of
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.json.arguments import FLOW_ID, OTHER_SPELLINGS, ArgumentDecoder, int_column, respelled
from tracediff.ingest.json.irregular import Batch, Event, read_events
from tracediff.ingest.json.native import CATEGORIES, IDS, NAMES, PHASES, Plain, PlainReader, argument_columns, is_used
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.model.names import PROCESS_LABELS
from tracediff.ingest.model.times import LONGEST_US, Inexact, from_numbers, from_text
from tracediff.ingest.model.trace import ABSENT_OF, Arguments, Columns, Trace, TraceMeta
from tracediff.patterns import late
from tracediff.runtimes import FLOW_CATEGORIES, OF_OWN_CATEGORIES

NEXT_EVENT = late(rb"\s*+,\s*+(?=\{)|\s*+\]\s*+\Z")
"""Behind an event: up to the next one, or to the end of the list."""


class Dictionary(dict[Any, int]):
    """Value → small code, given in order of first appearance.

    Attributes:
        new: the values that got their code after it was made, in order.
    """

    def __init__(self, codes: Iterable[tuple[Any, int]] = ()) -> None:
        super().__init__(codes)
        self.new: list[Any] = []

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self)
        self.new.append(value)
        return code

    def encode(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """int32 codes of ``values``."""
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))


ChunkPart = tuple[Columns, dict[int, Arguments]]
"""Columns of one chunk: base columns by name, and by category code the arguments, whose rows are of the part."""
Fields = tuple[Columns, Bools, Callable[[Int64], Int64], Callable[[dict[int, Int64]], dict[int, Columns]]]
"""What a reader has found of a chunk: base columns by name; bool[n] which events have arguments; what gives the ids of
the events at rows, int64[m], MISSING where one has none; what gives the columns of each category's arguments, for its
rows.
"""


class GrowingColumn(Struct):
    """A column under construction: it grows in place, so that no second copy of it is ever made."""

    kind: Any
    data: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.data) // int(np.dtype(self.kind).itemsize)

    def add(self, part: AnyArray, rows: int) -> None:
        """Append ``part``, after as many absent values as make the column end at ``rows``."""
        if gap := rows - len(part) - len(self):
            self.data += np.full(gap, ABSENT_OF[self.kind], self.kind).data
        self.data += part.data

    def array(self, rows: int) -> Any:
        """The finished column of ``rows`` values, without a copy."""
        self.add(np.empty(0, self.kind), rows)
        return np.frombuffer(self.data, self.kind)


def _append(columns: dict[str, GrowingColumn], part: Columns, rows: int) -> None:
    for name, values in part.items():
        columns.setdefault(name, GrowingColumn(values.dtype.type)).add(values, rows)


def _finished(columns: dict[str, GrowingColumn], rows: int) -> dict[str, Any]:
    return {name: column.array(rows) for name, column in sorted(columns.items())}


class GrowingTrace(Struct):
    """A trace under construction: the events so far, in columns that grow, and what their codes refer to."""

    names: Dictionary = field(default_factory=Dictionary)
    categories: Dictionary = field(default_factory=lambda: Dictionary((c, i) for i, c in enumerate(cat.KNOWN)))
    ids: Dictionary = field(default_factory=Dictionary)
    phases: Dictionary = field(default_factory=Dictionary)
    texts: Dictionary = field(default_factory=Dictionary)
    _base: dict[str, GrowingColumn] = {}
    _rows: dict[int, GrowingColumn] = {}
    _arguments: dict[int, dict[str, GrowingColumn]] = {}

    @property
    def length(self) -> int:
        """Events so far."""
        return len(self._base["ts"]) if self._base else 0

    def append(self, base: Columns, arguments_of: dict[int, Arguments]) -> None:
        """Append one part."""
        start = self.length
        _append(self._base, base, start + len(base["ts"]))
        for code, arguments in arguments_of.items():
            rows = self._rows.setdefault(code, GrowingColumn(np.int64))
            rows.add(arguments.rows + start, len(rows) + len(arguments.rows))
            _append(self._arguments.setdefault(code, {}), arguments.columns, len(rows))

    def trace_of(self, file: TraceFile, meta: TraceMeta) -> Trace:
        """The trace of these events, without notes."""
        arguments = {
            code: Arguments(rows.array(len(rows)), _finished(self._arguments[code], len(rows)))
            for code, rows in sorted(self._rows.items())
        }
        return Trace(
            **_finished(self._base, self.length),
            file=file,
            meta=meta,
            notes=[],
            names=list(self.names),
            categories=list(self.categories),
            ids=list(self.ids),
            phases=list(self.phases),
            arguments=arguments,
            texts=list(self.texts),
        )


class EventDecoder(GrowingTrace, kw_only=True, dict=True):
    """Decodes chunks of a trace; the first text is that of an absent one."""

    notes: Notes
    only: frozenset[str] | None
    argument_decoders: dict[int, ArgumentDecoder] = {}
    _stated: Dictionary = field(default_factory=Dictionary)
    _canonical: list[int] = []
    _plain_arguments: dict[int, dict[str, None]] = {}
    _times_as_text: bool = False

    def __post_init__(self) -> None:
        self.texts[b""]  # is code 0
        self._plain = PlainReader(partial(_is_wanted, self.only)) if is_used() else None

    def plain_events(self, text: bytes) -> tuple[list[Batch | Plain], int]:
        """(the plain events that ``text`` begins with, where the first other one begins); see `PlainReader.scan`."""
        plain, position, _ = self._plain.scan(text, 0, False) if self._plain else (None, 0, -1)
        return [plain] if plain else [], position

    def events(self, text: bytes) -> list[Batch | Plain]:
        """The events of ``text``, a JSON list, in order.

        Raises:
            msgspec.DecodeError, RecursionError: ``text`` is not a JSON list.
        """
        if self._plain is None:
            return [self._read(text)]
        batches: list[Batch | Plain] = []
        start = 1
        for _ in range(bounds.OTHER_EVENTS):
            plain, start, end = self._plain.scan(text, start, True)
            batches += [plain] if plain else []
            if start == len(text):
                return batches
            separator = NEXT_EVENT.match(text, end) if end >= 0 else None
            if separator is None:
                break
            batches.append(self._read(b"[%b]" % text[start:end]))
            start = separator.end()
        if text[start : start + 1] != b"{":  # a list that ends, or is none
            return [self._read(text)]
        return [*batches, self._read(b"[" + text[start:])]

    def _read(self, text: bytes) -> Batch:
        return read_events(text, self._times_as_text)

    def part(self, batch: Batch | Plain) -> ChunkPart:
        """The columns of what `events` found; unusable events are counted in the notes and left out."""
        base, has_arguments, ids_at, columns_of = (
            self._of_batch(batch) if isinstance(batch, Batch) else self._of_plain(batch)
        )
        keep = self._timed(base)
        category, kept_row = base["category"], np.cumsum(keep) - 1
        rows: dict[int, Int64] = {}
        ids: dict[int, Columns] = {}
        for code in np.flatnonzero(np.bincount(category[keep])).tolist():
            members = np.flatnonzero(keep & (category == code))
            rows[code] = members[has_arguments[members]]
            if self._keeps_ids(code) and ((flow_ids := ids_at(members)) != MISSING).any():
                rows[code], ids[code] = members, {FLOW_ID: flow_ids}
        rows = {code: mine for code, mine in rows.items() if len(mine)}
        columns = columns_of(rows)
        arguments = {code: Arguments(kept_row[mine], columns[code] | ids.get(code, {})) for code, mine in rows.items()}
        return base if keep.all() else {name: values[keep] for name, values in base.items()}, arguments

    def _of_plain(self, plain: Plain) -> Fields:
        codes, ids = plain.reader.codes, self.ids.__getitem__
        base: Columns = {
            "ts": plain.ts,
            "dur": plain.dur,
            "name": codes(NAMES, plain.name, self.names.__getitem__, ""),
            "pid": codes(IDS, plain.pid, ids),
            "tid": codes(IDS, plain.tid, ids),
            "phase": codes(PHASES, plain.phase, self.phases.__getitem__, ""),
        }
        base["category"] = self._categories(codes(CATEGORIES, plain.category, self._stated.__getitem__), base)
        return base, plain.has, plain.id.__getitem__, partial(self._plain_columns, plain, base["category"])

    def _plain_columns(self, plain: Plain, category: Any, rows: dict[int, Int64]) -> dict[int, Columns]:
        out = argument_columns(plain, rows, category, self.texts.__getitem__)
        for code, columns in out.items():
            self._plain_arguments.setdefault(code, {}).update(dict.fromkeys(columns))
            out[code] = {name: column for name, column in columns.items() if self._keeps(code, name)}
        return out

    def _of_batch(self, batch: Batch) -> Fields:
        if self._times_as_text and not batch.times_as_text:  # it was decoded before one that needs text
            batch = self._read(batch.text)
        events = batch.events
        try:
            ts = self._starts(events)
        except Inexact:
            self._times_as_text = True
            return self._of_batch(self._read(batch.text))
        self.notes.update(batch.notes.list())
        base: Columns = {
            "ts": ts,
            "dur": self._durations(events),
            "name": self.names.encode([e.name for e in events]),
            "pid": self.ids.encode([e.pid for e in events]),
            "tid": self.ids.encode([e.tid for e in events]),
            "phase": self.phases.encode([e.ph for e in events]),
        }
        base["category"] = self._categories(self._stated.encode([e.cat for e in events]), base)
        has_arguments = np.fromiter((len(cast(Any, e.args)) > 0 for e in events), bool, len(events))
        return (
            base,
            has_arguments,
            lambda rows: _flow_ids([events[i].id for i in rows.tolist()]),
            lambda rows: {
                code: self._columns(code, [events[i].args or b"{}" for i in mine.tolist()])
                for code, mine in rows.items()
            },
        )

    def _starts(self, events: list[Event]) -> Int64:
        if self._times_as_text:
            return from_text([e.ts for e in events])
        return from_numbers([MISSING if e.ts is None else e.ts for e in events])

    def _durations(self, events: list[Event]) -> Int64:
        durations = [MISSING if e.dur is None else e.dur for e in events]
        try:
            return from_numbers(durations)
        except Inexact:
            too_long = LONGEST_US + 1
            return from_numbers([d if d == MISSING else min(max(d, -too_long), too_long) for d in durations])

    def _categories(self, stated: NDArray[np.int32], base: Columns) -> NDArray[np.int32]:
        for new in self._stated.new[len(self._canonical) :]:
            self._canonical.append(-1 if not new else self._category(cat.RENAMED.get(new, new)))
        out: NDArray[np.int32] = np.array(self._canonical, np.int32)[stated]
        unstated = np.flatnonzero(out < 0)
        if len(unstated):
            memory = base["name"][unstated] == self.names.get("[memory]", -1)
            phases = np.where(memory, -1, base["phase"][unstated])
            for phase in dict.fromkeys(phases.tolist()):
                name = "cpu_instant_event" if phase < 0 else _of_phase(self.phases.new[phase])
                out[unstated[phases == phase]] = self.categories[name]
        out[base["phase"] == self.phases.get("C", -1)] = cat.COUNTER  # whatever category they state
        return out

    def _category(self, name: str) -> int:
        if name not in self.categories and len(self.categories) >= bounds.CATEGORIES:
            self.notes.add(
                "many-categories", f"categories beyond the first {bounds.CATEGORIES} were merged into “other”"
            )
            name = "other"
        return self.categories[name]

    def _timed(self, base: Columns) -> Bools:
        """bool[n]: which events of a part have a time; metadata events need none."""
        complete: Bools = base["phase"] == self.phases["X"]
        untimed: Bools = (base["ts"] == MISSING) & (base["category"] != cat.METADATA)
        unended = complete & (base["dur"] == MISSING) & ~untimed
        negative = complete & (base["dur"] < 0) & ~unended & ~untimed
        endless = complete & (base["dur"] > LONGEST_US * 1000) & ~untimed
        self.notes.add("no-time", "events without a start time were dropped", untimed.sum())
        self.notes.add("no-duration", "complete events without a duration count as 0 ns long", unended.sum())
        self.notes.add("negative-duration", "events with a negative duration count as 0 ns long", negative.sum())
        self.notes.add(
            "endless",
            f"events that last longer than {LONGEST_US // 86_400_000_000} days count as 0 ns long",
            endless.sum(),
        )
        base["dur"][unended | negative | endless] = 0
        base["dur"][~complete] = MISSING
        return ~untimed

    def _keeps(self, category: int, argument: str) -> bool:
        if self.only is None or argument in self.only or category == cat.COUNTER:  # whose arguments are its series
            return True
        if category == cat.METADATA:
            return argument in PROCESS_LABELS
        return category >= len(cat.KNOWN) and argument in OF_OWN_CATEGORIES

    def _keeps_ids(self, category: int) -> bool:
        """Whether to keep the ids that arrows have beside their arguments."""
        is_read = self.only is None or FLOW_ID in self.only
        return category >= cat.INSTANT and (is_read or category in map(self.categories.get, FLOW_CATEGORIES))

    def _columns(self, category: int, objects: list[Any]) -> Columns:
        decoder = self.argument_decoders.get(category)
        if decoder is None:
            decoder = self.argument_decoders[category] = ArgumentDecoder(category)
        decoder.learn(self._plain_arguments.get(category, ()))
        out: Columns = {}
        for name, column in decoder.columns(objects, self.notes).items():
            if not self._keeps(category, OTHER_SPELLINGS.get(name, name)):
                continue
            kind = decoder.kind(name)
            if kind is int:
                out[name] = int_column(column, self.notes)
            elif kind is float:
                out[name] = np.fromiter(column, np.float64, len(column))
            else:
                out[name] = self.texts.encode(list(map(bytes, column))) - np.int32(1)
        return respelled(out)


def _is_wanted(only: frozenset[str] | None, argument: str) -> bool:
    """Whether complete events of any category keep an argument."""
    return only is None or argument in only or argument in OF_OWN_CATEGORIES


def _of_phase(phase: str) -> str:
    """The category of an event that states none."""
    return cat.BY_PHASE.get(phase, "instant" if phase != "X" else "unknown")


def _flow_ids(ids: list[int | str | None]) -> Int64:
    """The ids of flow events if they are 64-bit integers, else MISSING."""
    return int64_of([i if isinstance(i, int) and -(2**63) <= i < 2**63 else MISSING for i in ids])
