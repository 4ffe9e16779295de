"""The rows that JSON, CSV, DataFrames, the page and the dashboard's grid have of a comparison: every column once, with
its name, value, meaning and heading, and the outputs that have it. Times are µs per step, counts per step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from tracediff import bounds
from tracediff.diff.comparison import OPERATOR, Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.items import LEVELS, Item
from tracediff.diff.ops import Op
from tracediff.diff.statistics.many import UNTESTED
from tracediff.diff.views import WorkChange
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import is_generated, table_name
from tracediff.runtimes import DEVICE_CATEGORIES
from tracediff.structs import NONE, SIDES, FrozenStruct, Pair

if TYPE_CHECKING:  # comparisons need no analysis of one set
    from tracediff.analysis import Analysis

JSON, CSV, FRAME, PAGE, GRID = "JSON", "CSV", "DataFrame", "page", "grid"
"""The outputs."""
FILES, SCREENS = (JSON, CSV, FRAME), (PAGE, GRID)
TEXT, TIME, COUNT, P = "text", "time", "count", "p"
"""How the values of a column are written."""
TYPES: dict[str, Any] = {TEXT: str, TIME: float, COUNT: float, P: float | None}
Scaled: TypeAlias = "Comparison | Analysis"
Value = Callable[[Any, Any], Any]
"""(comparison or analysis, row) → the value of a column."""


class RowColumn(FrozenStruct, dict=True):
    """One column.

    Attributes:
        name: in every output. A time ends in ``us``, a count in ``count``; what is test − control has ``delta``.
        help: what it means.
        value: or the path of the row's attribute, by default its name; numerators of times and counts are divided.
        type: of its values, None for that of its kind. one_of: all of them, where they are few.
        outputs: those that have it.
        head: its heading in tables on screens; empty where only the details of a row show it. width: in pixels.
        hidden: the screens whose tables leave it out; the grid shows it on request.
    """

    name: str
    help: str
    value: Value | str = ""
    type: Any = None
    one_of: tuple[str, ...] = ()
    outputs: Collection[str] = (*FILES, *SCREENS)
    head: str = ""
    width: int = 92
    hidden: Collection[str] = ()

    @cached_property
    def of(self) -> Value:
        """What reads the value of a row."""
        if callable(self.value):
            return self.value
        read, kind = attrgetter(self.value or self.name), self.kind
        if kind == TIME:
            return lambda scaled, row: scaled.us(read(row))
        return lambda scaled, row: scaled.number(read(row)) if kind == COUNT else read(row)

    @property
    def kind(self) -> str:
        """TEXT, TIME, COUNT or P."""
        endings = {"us": TIME, "count": COUNT, "instances": COUNT, "p_value": P, "q_value": P}
        return next((kind for ending, kind in endings.items() if self.name.endswith(ending)), TEXT)

    def heading(self, names: Pair[str]) -> str:
        """`head`, in which the sides are called ``names``."""
        start, comma, side = self.head.rpartition(", ")
        return start + comma + dict(zip(SIDES, names, strict=True)).get(side, side)

    @property
    def is_change(self) -> bool:
        """Whether it is test − control."""
        return "delta" in self.name


class RowSchema(FrozenStruct, dict=True):
    """The columns of one kind of row.

    Attributes: columns: in order. name, about: of the object in JSON documents.
    """

    columns: tuple[RowColumn, ...]
    name: str = ""
    about: str = ""

    @cached_property
    def of(self) -> dict[str, tuple[RowColumn, ...]]:
        """Output → the columns that it has."""
        return {o: tuple(column for column in self.columns if o in column.outputs) for o in (*FILES, *SCREENS)}

    def values(self, output: str, scaled: Scaled, row: Any) -> list[Any]:
        """The values of ``row`` in the columns of ``output``; a screen leaves untested cells empty."""
        cells = ((column, column.of(scaled, row)) for column in self.of[output])
        blank = UNTESTED.time_change if output in SCREENS else None
        return ["" if column.one_of and value == blank else value for column, value in cells]

    @cached_property
    def json_type(self) -> type[msgspec.Struct]:
        """The type of its objects in JSON documents."""
        fields = []
        for column in self.of[JSON]:
            enum = {"enum": list(column.one_of)} if column.one_of else None
            meta = Meta(description=column.help, extra_json_schema=enum)
            fields.append((column.name, Annotated[column.type or TYPES[column.kind], meta]))
        return msgspec.defstruct(self.name, fields, namespace={"__doc__": self.about})

    def json(self, scaled: Scaled, rows: Iterable[Any]) -> list[Any]:
        """``rows`` as objects of JSON."""
        return [self.json_type(*self.values(JSON, scaled, row)) for row in rows]


def both_sides(
    name: str, meaning: str, value: str | Callable[[Any, Any, int], Any], head: str = "", **more: Any
) -> list[RowColumn]:
    """The columns of both sides: ``*`` is the side in texts and paths; ``value`` has the side's position as well."""

    def column(k: int, side: str) -> RowColumn:
        texts = [text.replace("*", side) for text in (name, meaning, head)]
        own = (lambda scaled, row: value(scaled, row, k)) if callable(value) else value.replace("*", side)
        return RowColumn(texts[0], texts[1], own, head=texts[2], **more)

    return [column(k, side) for k, side in enumerate(SIDES)]


PER_STEP = "µs per step"
OCCURRENCES = "occurrences per step; a mean, so it may be a fraction"
TOTAL = "total time; a recursive call counts at each level. µs per step"
SELF = "self time: without children in the same lane, µs per step"
MODULE = "path of the nn.Module; null where unknown or several"
RELATIVE = RowColumn(
    "relative",
    "relative change beyond what all rows have in common; null where untested",
    "significance.relative",
    type=float | None,
    outputs=(JSON,),
)
NAME = RowColumn("name", "name for people: without addresses, hashes, ids and namespaces", head="name", width=340)
FAMILY = RowColumn("family", "kind of work: gemm, conv, attention, … (docs/families.md)", head="family", width=120)
RAW_NAME = RowColumn("raw_name", "name as recorded", outputs=(*FILES, PAGE))
CATEGORY = RowColumn(
    "category", "category of the trace: cpu_op, kernel, gpu_memcpy, …", head="category", width=110, hidden=(GRID,)
)
SIGNIFICANCE = (
    RowColumn(
        "time_change",
        "significance of the change of time between runs",
        "significance.time_change",
        one_of=("faster", "slower", "same", "unclear", "untested"),
        head="significance",
        width=95,
    ),
    RowColumn(
        "p_value",
        "p-value of the change; null where untested",
        "significance.p_value",
        head="p",
        hidden=SCREENS,
    ),
    RowColumn(
        "q_value",
        "p-value corrected for the number of tests (Benjamini–Hochberg); null where untested",
        "significance.q_value",
        head="q",
        hidden=SCREENS,
    ),
)
NUMBERS = (
    *both_sides("*_count", OCCURRENCES, "count.*", "count, *"),
    *both_sides("*_us", PER_STEP, "time.*", "*"),
    RowColumn("delta_us", "test − control, µs per step", "time.delta", head="change"),
)
"""The numbers that every kind of work has."""


STATES = RowSchema(
    (
        RowColumn("name", "state of the step account (docs/concepts.md)"),
        *NUMBERS[2:],
        *(column.replace(outputs=(JSON, FRAME)) for column in SIGNIFICANCE),
    ),
    "StateRow",
    "One state of the step; the states add up to the step.",
)
FAMILIES = RowSchema(
    (
        FAMILY.replace(name="name"),
        *both_sides("*_us", "mean over runs of the median over steps, µs per step", lambda _, family, k: family.us[k]),
        *SIGNIFICANCE,
        RELATIVE,
        RowColumn(
            "interval",
            "95 % confidence interval of the relative change; null where untested",
            "significance.interval",
            type=tuple[float, float] | None,
        ),
    ),
    "FamilyChange",
    "Work of one family, tested over runs.",
)

OPS = RowSchema(
    (
        NAME,
        RAW_NAME,
        RowColumn("device", "where it runs", one_of=("cpu", "gpu"), outputs=FILES),
        CATEGORY,
        FAMILY,
        *NUMBERS[:2],
        *both_sides(
            "*_total_us",
            TOTAL,
            "total.*",
            "total, *",
            hidden=SCREENS,
        ),
        *both_sides("*_self_us", SELF, "self_time.*", "*"),
        RowColumn(
            "delta_self_us", "test − control of the self time, µs per step", "delta", outputs=SCREENS, head="change"
        ),
        RowColumn("delta_count", "test − control, occurrences per step", "count.delta", outputs=FILES),
        RowColumn("delta_us", "test − control of the total time, µs per step", "total.delta", outputs=FILES),
        RowColumn(
            "count_change",
            "class of the change of count",
            one_of=("added", "deleted", "increased", "decreased", "unchanged"),
            outputs=FILES,
        ),
        *SIGNIFICANCE,
        RELATIVE,
        RowColumn("counts_vary", "whether the count differs from step to step on a side", type=bool, outputs=(JSON,)),
    ),
    "OpRow",
    "One operation by category and name.",
)


COUNTED = RowColumn("count", OCCURRENCES)
SET_OPS = RowSchema(
    (
        NAME,
        RAW_NAME,
        CATEGORY,
        FAMILY,
        COUNTED,
        RowColumn("total_us", TOTAL, "total"),
        RowColumn("self_us", SELF, "self_ns"),
    ),
    "OperationRow",
    "One operation by category and name.",
)
"""The operations of one set."""
TAKEN = RowColumn("us", PER_STEP, "ns")
SHARES = RowSchema((NAME, COUNTED, TAKEN), "ShareRow", "Work of one name.")
SET_STATES = RowSchema((STATES.columns[0], TAKEN), "StateTime", "One state of the step.")


def _gpu_below(side_or_delta: str, head: str) -> RowColumn:
    """A column of the GPU time that an operator's calls launched; None for other work, and without a GPU."""

    def value(comparison: Comparison, op: Op) -> float | None:
        times = comparison.gpu_below
        sums = times.get(table_name(op.raw_name), NONE) if times and op.category == OPERATOR else None
        return sums and comparison.us(getattr(sums, side_or_delta))

    return RowColumn(
        f"gpu_{side_or_delta}_us",
        "GPU time of what the operator launches, also through the operators below it, µs per step",
        value,
        outputs=(GRID,),
        head=f"GPU below, {head}",
    )


HOST_OPS = RowSchema((*OPS.columns, _gpu_below("delta", "change"), *(_gpu_below(side, side) for side in SIDES)))
"""Operators and calls, with the GPU time below them."""
SUMS = RowSchema((NAME, *NUMBERS))
INSTANCES = RowColumn(
    "instances",
    "how many instances of a module share the row",
    lambda comparison, row: comparison.module_instances[row.name],
    outputs=(GRID,),
    head="instances",
    width=105,
)
MODULES = RowSchema((*SUMS.columns, INSTANCES))


class First(msgspec.Struct):
    """One event, to be found in the file; stream of a GPU event, thread of an operator, null where not recorded."""

    file: str
    """name of the file"""
    ts: float
    """the number as it is in the file, in µs"""
    stream: int | None
    thread: str | None


class MemberOf(NamedTuple):
    """A member of a group, and its side."""

    side: str
    member: Item


def members(group: Group) -> Pair[list[MemberOf]]:
    """The members of both sides of a group."""
    control, test = group.members
    return Pair([MemberOf("control", m) for m in control], [MemberOf("test", m) for m in test])


def _first(comparison: Comparison, row: MemberOf) -> First:
    files = (comparison.control if row.side == "control" else comparison.test).files
    first, on_gpu = row.member.first, row.member.category in DEVICE_CATEGORIES
    return First(
        file=files[first.file],
        ts=first.ns / 1000,
        stream=int(first.lane) if on_gpu and first.lane else None,
        thread=first.lane if not on_gpu else None,
    )


MEMBERS = RowSchema(
    (
        RowColumn("side", "control or test", outputs=(CSV,)),
        NAME.replace(value=lambda _, row: display_name(row.member.name)),
        RAW_NAME.replace(value="member.name"),
        RowColumn("op", "operator that launched it; null if none did", "member.op", type=str | None),
        FAMILY.replace(value="member.family"),
        COUNTED.replace(value="member.count"),
        RowColumn("us", PER_STEP, "member.ns"),
        RowColumn(
            "first",
            "its first event in the first used step of the first file that has it",
            _first,
            type=First,
            outputs=(JSON,),
        ),
    ),
    "MemberRow",
    "Work of one kind on one side of a group.",
)


LEVEL = RowColumn(
    "level", "how the sides were matched (docs/matching.md)", one_of=LEVELS, head="match level", width=105
)
PHASE = RowColumn("phase", "forward, backward, optimizer, other or unknown", head="phase", width=100, hidden=SCREENS)
LINES = RowColumn(
    "lines",
    "lines of code outside of torch that it runs for, file.py(12): function; the largest first",
    lambda _, group: ", ".join(group.lines),
    outputs=(CSV, FRAME),
)
PARTS = (
    RowColumn(
        "count_part_us",
        "part of the change by count, µs per step",
        lambda comparison, group: float(comparison.us(group.parts[0])),
    ),
    RowColumn(
        "mean_part_us",
        "part of the change by mean duration, µs per step",
        lambda comparison, group: float(comparison.us(group.parts[1])),
    ),
)
KERNELS = ("*_kernels", "names of the kernels of *, the largest first")
MEMBERS_OF = ("*", "members of *, the largest first")
GROUPS = RowSchema(
    (
        LEVEL,
        RowColumn("name", "name of the largest member, for people"),
        RowColumn(
            "operator",
            "operator that all members share; null where they share none",
            lambda _, group: group.operator or None,
            outputs=(FRAME,),
        ),
        RowColumn(
            "shapes",
            "shapes of its inputs; null where unknown",
            lambda _, group: group.shapes or None,
            outputs=(FRAME,),
        ),
        *both_sides(*KERNELS, lambda _, g, k: [display_name(m.name) for m in g.members[k]], outputs=(FRAME,)),
        FAMILY,
        RowColumn("module", MODULE, type=str | None),
        PHASE,
        LINES.replace(value="lines", type=tuple[str, ...], outputs=(JSON,)),
        LINES,
        *both_sides(
            *MEMBERS_OF,
            lambda comparison, group, k: MEMBERS.json(comparison, members(group)[k]),
            type=list[MEMBERS.json_type],  # type: ignore[name-defined]  # made from its columns
            outputs=(JSON,),
        ),
        *both_sides(
            "*_ops",
            "occurrences per step of the operator that all members share; null where they share none",
            lambda comparison, group, k: group.ops and comparison.number(group.ops[k]),
            type=float | None,
            outputs=(JSON,),
        ),
        *(column.replace(outputs=(CSV, FRAME)) for column in NUMBERS[:-1]),
        NUMBERS[-1],
        *PARTS,
    ),
    "GroupRow",
    "Work of both sides that is the same, or work of one side without a counterpart; every GPU event (without a GPU: "
    "every operator) is in exactly one group.",
)


def _fused(name: str, meaning: str, *, is_fused: bool) -> RowColumn:
    """The names of the members that are fused kernels, or of the operators of the others."""

    def value(_: Comparison, group: Group) -> str:
        members = [m for m in chain(*group.members) if is_generated(m.name) == is_fused]
        return ", ".join(dict.fromkeys((not is_fused and m.op) or display_name(m.name) for m in members))

    return RowColumn(name, meaning, value)


FUSIONS = RowSchema(
    (
        _fused("ops", "what one side computes one by one", is_fused=False),
        _fused("kernels", "what the other side has fused", is_fused=True),
        RowColumn("module", MODULE),
        PHASE,
        *NUMBERS,
    ),
)


def _merged(column: RowColumn, *outputs: str) -> RowColumn:
    """A column of groups, of a change's groups as one."""
    return column.replace(value=lambda comparison, change: column.of(comparison, change.group), outputs=outputs)


def _largest_members(comparison: Comparison, change: WorkChange, k: int) -> list[list[Any]]:
    return [MEMBERS.values(PAGE, comparison, row) for row in members(change.group)[k][: bounds.MEMBERS]]


CHANGES = RowSchema(
    (
        NAME.replace(
            help="operator that launched it, or its kernels",
            value=lambda _, change: change.operator or change.kernels,
            width=230,
            outputs=SCREENS,
        ),
        RowColumn(
            "kernels",
            "what ran, control → test",
            lambda _, change: change.kernels if change.operator else "",
            outputs=SCREENS,
            head="kernels",
            width=200,
        ),
        _merged(LEVEL, *SCREENS).replace(hidden=SCREENS),
        _merged(FAMILY, *SCREENS),
        RowColumn(
            "operator", "operator that launched it", lambda _, change: change.operator or None, outputs=(FRAME, PAGE)
        ),
        RowColumn(
            "shapes",
            "shapes of its inputs",
            lambda _, change: change.shapes or None,
            head="shapes",
            width=220,
            hidden=SCREENS,
        ),
        RowColumn("module", MODULE, lambda _, change: change.module or None, head="module", width=220),
        *both_sides(*KERNELS, lambda _, change, k: [*change.short_names[k]], outputs=(FRAME,)),
        _merged(PHASE, *SCREENS),
        _merged(LINES, PAGE),
        INSTANCES.replace(value=lambda _, change: len(change.groups)),
        *NUMBERS,
        *(_merged(column, PAGE) for column in PARTS),
        *both_sides(*MEMBERS_OF, _largest_members, type=list, outputs=(PAGE,)),
        RowColumn(
            "all_members",
            "how many members each side has",
            lambda _, change: [*change.group.members.map(len)],
            type=list,
            outputs=(PAGE,),
        ),
    ),
)
