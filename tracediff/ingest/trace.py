"""`Trace`: one file's events as columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracediff.ingest.health import Note
from tracediff.ingest.source import TraceFile
from tracediff.ingest.times import LARGEST_US, MISSING, Int64

Codes = NDArray[np.int32]
ABSENT_OF: dict[Any, Any] = {np.int64: MISSING, np.float64: float("nan"), np.int32: -1}
"""The value of an argument that an event lacks, by the type of its column."""


Number = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_US * 1000)]
"""Numbers of the metadata; one outside of these ranges is dropped."""


class Distributed(msgspec.Struct, frozen=True):
    """The ``distributedInfo`` of this process.

    Attributes:
        pg_config: its process groups as recorded, whatever their form.
    """

    rank: Rank | None = None
    world_size: Rank | None = None
    backend: str | None = None
    pg_config: Any = None


class Device(msgspec.Struct, frozen=True):
    """One entry of ``deviceProperties``."""

    id: Number | None = None
    name: str = ""


class TraceMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The allow-listed top-level metadata: no other metadata is read, kept or shown.

    Attributes:
        versions: of vendors' runtimes and drivers, by their key in the file.
    """

    schema_version: Number | None = None
    distributed_info: Distributed | None = None
    device_properties: tuple[Device, ...] = ()
    base_time_nanoseconds: Nanoseconds | None = None
    with_stack: Number | bool | None = msgspec.field(default=None, name="with_stack")
    record_shapes: Number | bool | None = msgspec.field(default=None, name="record_shapes")
    profile_memory: Number | bool | None = msgspec.field(default=None, name="profile_memory")
    with_modules: Number | bool | None = msgspec.field(default=None, name="with_modules")
    with_flops: Number | bool | None = msgspec.field(default=None, name="with_flops")
    torch_version: str | None = msgspec.field(default=None, name="torch_version")
    versions: dict[str, Number] = {}


@dataclass
class Arguments:
    """The arguments of one category's events.

    Attributes:
        rows: int64[n], positions of these events in the trace's columns, ascending.
        ints: argument name → int64[n], MISSING where absent.
        floats: argument name → float64[n], NaN where absent.
        texts: argument name → int32[n], codes into ``Trace.texts`` (strings as they are, lists and objects as JSON), −1
            where absent.
    """

    rows: Int64
    ints: dict[str, Int64] = field(default_factory=dict)
    floats: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    texts: dict[str, Codes] = field(default_factory=dict)


@dataclass(kw_only=True)
class Trace:
    """One trace file in columns of equal length n, in the file's order.

    Attributes:
        file: where it came from.
        meta: allow-listed metadata.
        notes: health notes of reading it.
        ts: int64[n] start in ns on the trace's own clock.
        dur: int64[n] duration in ns, MISSING for events that are not complete ("ph": "X").
        name: int32[n] codes into ``names``.
        category: int32[n] codes into ``categories`` (tracediff.ingest.categories gives the fixed ones).
        pid, tid: int32[n] codes into ``ids`` (process and thread ids as int, str or None).
        phase: int32[n] codes into ``phases``.
        arguments: category code → its events' arguments.
        texts: strings that text arguments refer to.
        torch_functions: those of ``names`` that are Python functions of torch itself.
    """

    file: TraceFile
    meta: TraceMeta
    notes: list[Note]
    ts: Int64
    dur: Int64
    name: Codes
    category: Codes
    pid: Codes
    tid: Codes
    phase: Codes
    names: list[str]
    categories: list[str]
    ids: list[int | str | None]
    phases: list[str]
    arguments: dict[int, Arguments]
    texts: list[str]
    torch_functions: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.ts)

    def names_of(self, rows: Int64) -> list[str]:
        """The name of each of the events at ``rows``."""
        return [self.names[code] for code in self.name[rows].tolist()]

    def named(self, matches: Callable[[str], object], rows: Int64 | None = None) -> NDArray[np.bool_]:
        """bool[n]: whether ``matches`` is true for each event's name, or bool[m] for the m events at ``rows``; it is
        called once per name.
        """
        codes = self.name if rows is None else self.name[rows]
        return np.array([bool(matches(name)) for name in self.names], bool)[codes]

    def named_among(self, rows: Int64, matches: Callable[[str], object]) -> NDArray[np.bool_]:
        """bool[m]: the same for the m events at ``rows``; faster if these are few."""
        codes, inverse = np.unique(self.name[rows], return_inverse=True)
        return np.array([bool(matches(self.names[code])) for code in codes.tolist()], bool)[inverse]

    def integer(self, category: int, argument: str) -> tuple[Int64, Int64]:
        """(rows int64[m], values int64[m]) of the events of ``category`` that carry the integer ``argument``."""
        columns = self.arguments.get(category)
        if columns is None or argument not in columns.ints:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        values = columns.ints[argument]
        is_recorded = values != MISSING
        return columns.rows[is_recorded], values[is_recorded]

    def integer_column(self, argument: str, categories: tuple[int, ...], missing: int = MISSING) -> Int64:
        """int64[n] of ``argument`` for every event, ``missing`` where an event has none or is of another category."""
        out = np.full(len(self), missing, np.int64)
        for category in categories:
            rows, values = self.integer(category, argument)
            out[rows] = values
        return out

    def text_column(self, argument: str, category: int) -> Codes:
        """int32[n] codes into ``texts`` of ``argument``, −1 where an event has none or is of another category."""
        out = np.full(len(self), -1, np.int32)
        columns = self.arguments.get(category)
        if columns is not None and argument in columns.texts:
            out[columns.rows] = columns.texts[argument]
        return out

    def arguments_of(self, row: int) -> dict[str, Any]:
        """All arguments of the event at ``row``, by name: int, float, str (JSON text for lists). Slow: for
        single events.
        """
        columns = self.arguments.get(int(self.category[row]))
        if columns is None:
            return {}
        position = int(np.searchsorted(columns.rows, row))
        if position == len(columns.rows) or columns.rows[position] != row:
            return {}
        found: dict[str, Any] = {k: int(v[position]) for k, v in columns.ints.items() if v[position] != MISSING}
        found |= {k: float(v[position]) for k, v in columns.floats.items() if not np.isnan(v[position])}
        found |= {k: self.texts[v[position]] for k, v in columns.texts.items() if v[position] >= 0}
        return found
