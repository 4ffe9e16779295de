"""`TableSchema`: the keys, columns and rates of a table, and the event arguments it needs; and the schemas of the
tables over ranks, which `tracediff.aggregate.collective_skew` builds from the collectives of all files of a set
together.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import field

from tracediff.arrays import AnyArray, Int64, combined, grouped, numbered_texts
from tracediff.profile.model.profile import TableRows
from tracediff.structs import FrozenStruct

UNITS = ("count", "ns", "bytes", "flop")
Key = tuple[AnyArray, Sequence[str] | Callable[[int], str]]
"""Codes, and the text of each; codes of the same text are one key."""
Amounts = AnyArray | int
"""A number for each row, or for all."""


class Titled(FrozenStruct):
    """What has a stable short name, its key in tables and JSON, and a title, its heading."""

    name: str
    title: str


class Column(Titled):
    """A quantity per step, named without its unit, one of UNITS; over rows, steps and files it adds up."""

    unit: str


def read_columns(table: str) -> tuple[Column, ...]:
    """The columns of a table, one on each line: name, unit and title."""
    rows = (line.split(maxsplit=2) for line in table.strip().splitlines())
    return tuple(Column(name, title, unit) for name, unit, title in rows)


class Rate(Titled):
    """A number that does not add up, computed where it is shown; its name has the unit.

    Attributes:
        compute: (key, column → value, names of the GPUs) → the number, None where it is not known.
        is_part: whether it is a part of a whole.
    """

    compute: Callable[[tuple[str, ...], Mapping[str, float], tuple[str, ...]], float | None]
    is_part: bool = False


def _quotient(
    over: str, under: str, factor: float, _key: tuple[str, ...], value: Mapping[str, float], _gpus: tuple[str, ...]
) -> float | None:
    """That of two columns; None if the divisor is 0."""
    return factor * value[over] / value[under] if value[under] else None


def read_rates(table: str) -> tuple[Rate, ...]:
    """The rates of a table, one on each line: name, over / under, factor and title."""
    rows = (line.split(maxsplit=5) for line in table.strip().splitlines())
    return tuple(
        Rate(name, title, partial(_quotient, over, under, float(factor)))
        for name, over, _, under, factor, title in rows
    )


class TableSchema(Titled):
    """The keys, columns and texts of a table.

    Attributes:
        about: what the columns mean, in a few sentences.
        keys: names of the texts that identify a row, ``_`` for a blank.
        columns: rows are sorted by the first.
        rates: what is computed of the columns.
        arguments: event arguments that it needs beyond those of every profile.
        labels: key → what its texts are shown as, of keys that are event names, or states of the step account.
    """

    about: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    rates: tuple[Rate, ...] = ()
    arguments: tuple[str, ...] = ()
    labels: dict[str, Callable[[str], str]] = field(default_factory=dict)


def summed(step: Int64, keys: Sequence[Key], columns: Sequence[Amounts]) -> TableRows:
    """The table of m occurrences, summed by step and key.

    Args:
        step: int64[m] position of their step; those outside every step (below 0) are left out.
        keys: codes int[m]. columns: int[m] or bool[m] each, or a number.
    """
    inside = np.flatnonzero(step >= 0)
    numbered = [_by_text(codes[inside], texts) for codes, texts in keys]
    (at_step, *codes), values = grouped(
        (step[inside], *(code for code, _ in numbered)),
        [column if isinstance(column, int) else column[inside] for column in columns],
    )
    key, distinct = combined(*codes)
    rows = ([texts[c] for c in code[distinct].tolist()] for code, (_, texts) in zip(codes, numbered, strict=True))
    return TableRows(tuple(zip(*rows, strict=True)), at_step, key, np.stack(values, axis=1))


def _by_text(codes: AnyArray, texts: Sequence[str] | Callable[[int], str]) -> tuple[Int64, list[str]]:
    """(code of each text, the distinct texts)."""
    code, first = combined(codes)
    text = texts if callable(texts) else texts.__getitem__
    place, distinct = numbered_texts(text(c) for c in codes[first].tolist())
    return place[code], distinct


WAITS = TableSchema(
    "collective_waits",
    "Waits in collectives",
    "Each collective matched across ranks. Wait: until the last rank arrives; transfer: from then to the end. Unknown: "
    "operations without their partners in the files of other ranks, and operations that one rank can leave before "
    "others arrive (broadcast, send, …), for which wait and transfer cannot be separated. The bandwidths are those of "
    "the transfer.",
    keys=("collective", "group", "dtype", "size"),
    columns=read_columns("""
        time        ns     time
        wait        ns     wait
        transfer    ns     transfer
        unknown     ns     unknown
        exposed     ns     exposed
        overlapped  ns     overlapped
        operations  count  operations
        partial     count  missing ranks
        moved       bytes  moved
        moved_time  ns     transfer with known size
        bus         bytes  bus traffic
        bus_time    ns     transfer with known bus traffic
    """),
    rates=read_rates("""
        algorithm_gb_s  moved / moved_time  1  algorithm bandwidth, GB/s
        bus_gb_s        bus / bus_time      1  bus bandwidth, GB/s
    """),
)
STRAGGLERS = TableSchema(
    "stragglers",
    "Stragglers",
    "Ranks that arrive last at collectives, so that the other ranks wait. Wait caused: the wait of the other ranks, "
    "summed over them, at collectives where this rank arrived last. Late by: how long after the second-to-last rank it "
    "arrived. If the last two arrivals lie within the uncertainty of the clocks, the row “unclear” has them. Times are "
    "sums over collectives: an instant in which several wait counts for each, so sums may exceed the step.",
    keys=("rank",),
    columns=read_columns("""
        held_up     ns     wait caused
        last        count  arrived last
        late        ns     late by
        wait        ns     own wait
        transfer    ns     own transfer
        exposed     ns     own exposed
        operations  count  operations
    """),
    rates=read_rates("late_mean_us  late / last  1e-3  mean late by, µs"),
)
STRAGGLING_STEPS = TableSchema(
    "straggling_steps",
    "Stragglers by step",
    "Stragglers for each used step in which a rank arrived last; the mean over the runs that have the step.",
    keys=("step", "rank"),
    columns=STRAGGLERS.columns[:3],
    rates=STRAGGLERS.rates,
)
CLOCKS = TableSchema(
    "rank_clocks",
    "Rank clock offsets",
    "How far each rank's clock is ahead of the clock of its reference rank, measured at the ends of collectives that "
    "end on all ranks at the same time. 90 % of the collectives agree within the uncertainty. The offset is subtracted "
    "before ranks are compared.",
    keys=("run", "rank", "reference"),
    columns=read_columns("""
        offset       ns     ahead by
        uncertainty  ns     uncertainty
        shared       count  collectives
    """),
)

OVER_RANKS = {schema.name: schema for schema in (WAITS, STRAGGLERS, STRAGGLING_STEPS, CLOCKS)}
"""Name → schema, in the order in which they are shown."""
