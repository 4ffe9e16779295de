"""The rows of report tables, the same for every output format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.match import LEVELS
from tracediff.diff.ops import HOST_WORK, Op
from tracediff.diff.preflight import Reason
from tracediff.diff.step_time import State
from tracediff.diff.views import Modules, Sum, summed, summed_by
from tracediff.diff.work_changes import WorkChange
from tracediff.formatting import Unit, counts, part, percents, plural, signed_percent, time_unit
from tracediff.ingest.health import Note
from tracediff.profile.kernels.match_names import match_name
from tracediff.profile.step_states import state_label

SMALL_FAMILY = 0.005
"""Families of operators below this fraction of the step share one row."""
SMALL_STATE = 0.0005
"""States below this fraction of the step share one row where nothing else is asked: each would read as 0.0."""
MOST = 0.8
"""Part of an operation's change from which its significance is that of a row."""
LEAST_CHANGE = 0.001
"""Fraction of the step below which a change of work is no row of its own."""
MOST_NOTES = 40
"""Health notes that are listed: files of others may cause any number."""
ONE_SIDED = "added or removed"
T = TypeVar("T")
ALL_MODULES = Modules()


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table; times in µs per step, counts per step.

    Attributes:
        time_change: its significance, empty if untested.
        operator: that launched matched work. kernels: ``old → new``; of other rows what they are called. module: its
            path. shapes: of the operator's inputs. All are empty where unknown.
    """

    name: str
    control_us: float
    test_us: float
    delta_us: float
    control_count: float = 0.0
    test_count: float = 0.0
    time_change: str = ""
    operator: str = ""
    kernels: str = ""
    module: str = ""
    shapes: str = ""

    def times(self, unit: Unit) -> list[str]:
        """Control, test and change."""
        return [unit.plain(self.control_us), unit.plain(self.test_us), unit.signed(self.delta_us)]

    def cells(self, unit: Unit) -> list[str]:
        """Counts, control, test and change."""
        return [counts(self.control_count, self.test_count), *self.times(unit)]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """A table of rows that add up to `whole`, in one unit."""

    title: str
    rows: list[Row]
    whole: Row
    unit: Unit


NUMBERS = ("control_count", "test_count", "control_us", "test_us", "delta_us")
"""The columns of numbers that every table of work has."""


def numbers(comparison: Comparison, work: Group | WorkChange | Sum) -> dict[str, Any]:
    """`NUMBERS` of ``work``: counts and µs per step."""
    times = (work.control, work.test) if isinstance(work, Sum) else (work.control_ns, work.test_ns)
    events = map(comparison.number, (work.control_count, work.test_count))
    return dict(zip(NUMBERS, (*events, *map(comparison.us, (*times, work.delta))), strict=True))


SORTS: dict[str, Callable[[Row], float]] = {
    "change": lambda row: -abs(row.delta_us),
    "slower": lambda row: -row.delta_us,
    "faster": lambda row: row.delta_us,
    "control": lambda row: -row.control_us,
    "test": lambda row: -row.test_us,
    "count": lambda row: -abs(row.test_count - row.control_count),
    "name": lambda _: 0.0,
}
"""Orders of the tables of changes by their numbers; those equal in them are in order of name."""


def step_sums(comparison: Comparison) -> Sums:
    """The states that take any time on either side; families of operators the largest first. Families below
    `SMALL_FAMILY` share a row, and so do states below `SMALL_STATE`.
    """
    step, us = comparison.step_time, comparison.us
    whole = Row(name="step", control_us=us(step.control), test_us=us(step.test), delta_us=us(step.delta))
    unit = time_unit([whole.control_us, whole.test_us])
    return Sums(title="Where the step went", rows=_step_rows(comparison), whole=whole, unit=unit)


def unexplained_ns(comparison: Comparison) -> str:
    """What the states leave unexplained of the step's change: 0."""
    return f"{comparison.step_time.residual / comparison.scale:g}"


def _step_rows(comparison: Comparison) -> list[Row]:
    has_gpu = comparison.control.has_gpu or comparison.test.has_gpu
    states = [s for s in comparison.step_time.states if s.control or s.test]
    families = sorted((s for s in states if s.name.startswith("op:")), key=lambda s: -max(s.control, s.test))
    others = [s for s in states if s not in families]
    return [
        *_with_small_in_one(comparison, families, SMALL_FAMILY, "op: {} smaller families", has_gpu),
        *_with_small_in_one(comparison, others, SMALL_STATE, "{} smaller states", has_gpu),
    ]


def _with_small_in_one(
    comparison: Comparison, states: list[State], least: float, name: str, has_gpu: bool
) -> list[Row]:
    """A row per state; the states below the fraction ``least`` of the step on both sides, if several, in a last one."""
    step, us = comparison.step_time, comparison.us
    small = [s for s in states if max(s.control, s.test) < least * max(step.control, step.test)]
    shown = [s for s in states if s not in small] if len(small) > 1 else states
    times = [(state_label(s.name, has_gpu), s.control, s.test) for s in shown]
    if len(shown) < len(states):
        times.append((name.format(len(small)), sum(s.control for s in small), sum(s.test for s in small)))
    return [
        Row(name=label, control_us=us(control), test_us=us(test), delta_us=us(test - control))
        for label, control, test in times
    ]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """A table of changes. Attributes: title: its heading. rows: the first of them. more: how many are left out."""

    title: str
    rows: list[Row]
    more: int


def changes(comparison: Comparison, device: str | None, sort: str, top: int) -> list[Changes]:
    """The tables of changes: matched work (``gpu``; operators where there is no GPU) and, where there is a GPU, self
    time on the host (``cpu``); both where ``device`` is None or all.
    """
    has_gpu = bool(comparison.gpu_time.groups)
    tables = []
    if device != "cpu" or not has_gpu:
        title = "Changes by work" if sort == "change" else f"Work, sorted by {sort}"
        rows, more = work_rows(comparison, sort, top)
        tables.append(Changes(title=title if has_gpu else f"{title}, on the host", rows=rows, more=more))
    if device != "gpu" and has_gpu:
        title = "Largest changes on the host (self time)"
        rows, more = host_rows(comparison, sort, top)
        title = title if sort == "change" else f"Work on the host (self time), sorted by {sort}"
        tables.append(Changes(title=title, rows=rows, more=more))
    return tables


def host_rows(comparison: Comparison, sort: str, top: int) -> tuple[list[Row], int]:
    """The ``top`` changes of self time on the host, and how many more there are."""
    us, number = comparison.us, comparison.number

    def unnamed(op: Op) -> Row:
        return Row(
            name="",
            control_us=us(op.control_self),
            test_us=us(op.test_self),
            delta_us=us(op.delta),
            control_count=number(op.control_count),
            test_count=number(op.test_count),
            time_change="" if op.time_change == "untested" else op.time_change,
        )

    def named(op: Op, row: Row) -> Row:
        return replace(row, name=op.name, kernels=op.name)

    ops = [
        op
        for op in comparison.ops
        if op.category in HOST_WORK and (op.delta or op.control_count != op.test_count or sort != "change")
    ]
    return _first(ops, unnamed, named, sort, top), max(len(ops) - top, 0)


def work_rows(comparison: Comparison, sort: str, top: int) -> tuple[list[Row], int]:
    """The ``top`` changes of matched work with its instances merged, and how many more there are."""
    words = {op.name: op for op in comparison.ops if op.time_change != "untested"}

    def unnamed(change: WorkChange) -> Row:
        return Row(name="", **numbers(comparison, change))

    def named(change: WorkChange, row: Row) -> Row:
        names = {name: getattr(change, name) for name in ("name", "operator", "kernels", "module", "shapes")}
        return replace(row, time_change=_significance(change, words), **names)

    found = [
        change
        for change in comparison.work_changes
        if change.delta or change.control_count != change.test_count or sort != "change"
    ]
    return _first(found, unnamed, named, sort, top), max(len(found) - top, 0)


Both = tuple[list[int], list[int]]
"""Time and count on control and test, as numerators over the comparison's scale."""


def changed_work(comparison: Comparison, top: int) -> Sums:
    """The ``top`` changes of the work by operator, of work without one by family, the largest first: all that each
    side's operators launched, whatever it is matched with. The last row is the others, which have no operator.
    """
    has_gpu = bool(comparison.gpu_time.groups)
    words = {op.name: op for op in comparison.ops if op.time_change != "untested"}
    sums: dict[str, Both] = {}
    for group in comparison.work.groups:
        for side, members in enumerate(group.sides):
            known = {other.op for other in group.sides[1 - side]}
            partner = known.pop() if len(known) == 1 else None  # names work whose operator one side did not record
            for member in members:
                op = member.op or partner or ("" if has_gpu else member.name)
                ns, events = sums.setdefault(match_name(op) if op else f"{member.family} kernels", ([0, 0], [0, 0]))
                ns[side] += member.ns
                events[side] += member.count
    rows = [replace(_summed(comparison, name, [both], words), operator=name) for name, both in sums.items()]
    rows.sort(key=lambda row: (-abs(row.delta_us), row.name))
    steps = comparison.us(comparison.step_time.control), comparison.us(comparison.step_time.test)
    top = min(top, sum(abs(row.delta_us) >= LEAST_CHANGE * max(steps) for row in rows))
    left = [sums[row.name] for row in rows[top:]]
    others = [_summed(comparison, plural(len(rows) - top, "other"), left, {})] if top and left else []
    return Sums(
        title="GPU work by operator" if has_gpu else "Operators (self time)",
        rows=[*rows[:top], *others],
        whole=_summed(comparison, "all GPU work" if has_gpu else "all operators", [*sums.values()], {}),
        unit=time_unit(steps),
    )


def _summed(comparison: Comparison, name: str, parts: Sequence[Both], tested: dict[str, Op]) -> Row:
    sums = [[sum(part[k][side] for part in parts) for side in (0, 1)] for k in (0, 1)]
    summed = Sum(name, *sums[0], *sums[1])
    time_change = op.time_change if (op := tested.get(name)) else ""
    return Row(name=name, time_change=time_change, **numbers(comparison, summed))


def _significance(change: WorkChange, tested: dict[str, Op]) -> str:
    """The significance of the only kernel or operator of ``change``, if most of what changed of it is here."""
    op = tested.get(change.kernels or change.operator)
    return op.time_change if op and change.delta * op.delta > 0 and abs(change.delta) >= MOST * abs(op.delta) else ""


def _first(
    items: Sequence[T], unnamed: Callable[[T], Row], named: Callable[[T, Row], Row], sort: str, top: int
) -> list[Row]:
    """The first ``top`` rows of ``items`` in the order ``sort``: only those get a name that may be among them by their
    numbers, since names are costly where there are many.
    """
    rows = [unnamed(item) for item in items]
    places = [SORTS[sort](row) for row in rows]
    last = max(sorted(places)[:top], default=0.0)
    chosen = [named(item, row) for item, row, place in zip(items, rows, places, strict=True) if place <= last]
    return sorted(chosen, key=lambda row: (SORTS[sort](row), row.name))[:top]


BY_TITLES = {
    "family": "by family",
    "phase": "by phase",
    "module": "by module",
    "op": "by operator",
    "kernel": "by kernel",
    "line": "by line of code",
    "cause": "by cause",
}
"""View of the work → the end of its title."""


def work_title(comparison: Comparison, view: str) -> str:
    """The title of a view."""
    return f"{'GPU time' if comparison.gpu_time.groups else 'Operator self time'} {BY_TITLES[view]}"


def view_rows(comparison: Comparison, view: str, top: int, modules: Modules = ALL_MODULES) -> tuple[list[Row], int]:
    """The ``top`` lines of a view of the work, and how many more there are; ``modules`` says how modules are summed."""
    lines = summed_by(comparison.work, modules) if view == "module" else summed(comparison.work, view)
    shown = [Row(name=line.name, kernels=line.name, **numbers(comparison, line)) for line in lines[:top]]
    if view == "module":
        shown = [replace(row, kernels="", module=row.name) for row in shown]
    return shown, max(len(lines) - top, 0)


def shows_causes(comparison: Comparison) -> bool:
    """Whether a table of the work by cause is worth showing: some of it was fused."""
    return any(group.level == "fusion" for group in comparison.work.groups)


def tensor_core_line(comparison: Comparison) -> str | None:
    """The share of kernel time on tensor cores on both sides; None if neither uses them, or without a GPU."""
    shares = comparison.gpu_time.tensor_core_shares
    return f"tensor cores: {percents(*shares)} of kernel time" if shares and any(shares) else None


def matched_line(comparison: Comparison) -> str:
    """How much of the work has a counterpart, by match level."""
    work = comparison.work
    whole = sum(g.control_ns + g.test_ns for g in work.groups)
    parts: dict[str, int] = {}
    for group in work.groups:
        name = {"added": ONE_SIDED, "removed": ONE_SIDED}.get(group.level, group.level)
        parts[name] = parts.get(name, 0) + group.control_ns + group.test_ns
    shown = [f"{level} {part(parts[level], whole)}" for level in (*LEVELS, ONE_SIDED) if parts.get(level)]
    return f"{plural(len(work.groups), 'group')} of work: {', '.join(shown)}" if whole else ""


def common_line(comparison: Comparison) -> str | None:
    """The change that all tested operators have in common; None if none was tested."""
    if not any(op.p_value is not None for op in comparison.ops):
        return None
    return f"change common to all tested operators: {signed_percent(comparison.common_change)} (median)"


def gpu_summary(comparison: Comparison) -> Row:
    """GPU time per step on both sides."""
    gpu = comparison.gpu_time
    events = sum(g.control_count for g in gpu.groups), sum(g.test_count for g in gpu.groups)
    return Row(name="GPU time", **numbers(comparison, Sum("GPU time", gpu.control, gpu.test, *events)))


def health_lines(comparison: Comparison, codes: Collection[str] | None = None) -> list[str]:
    """Health notes with both sides' counts, equal ones once, of very many the first; with ``codes`` only those."""
    return first_notes(
        [
            f"{code} ({control:,} → {test:,}): {message}"
            for code, message, control, test in health(comparison)
            if codes is None or code in codes
        ]
    )


def first_notes(lines: list[str]) -> list[str]:
    """The first `MOST_NOTES` of ``lines``, and how many more there are."""
    more = len(lines) - MOST_NOTES
    return [*lines[:MOST_NOTES], f"{more:,} more notes; --json lists all"] if more > 0 else lines


def health(comparison: Comparison) -> list[tuple[str, str, int, int]]:
    """(code, message, count of control, of test) of each health note."""
    notes = dict.fromkeys((n.code, n.message) for n in comparison.control.notes + comparison.test.notes)
    control, test = comparison.control.notes, comparison.test.notes
    return [(code, text, _count(control, code, text), _count(test, code, text)) for code, text in notes]


def _count(notes: tuple[Note, ...], code: str, message: str) -> int:
    return sum(n.count for n in notes if (n.code, n.message) == (code, message))


def cautions(comparison: Comparison) -> list[Reason]:
    """The reasons of the preflight: those that refuse the comparison first, then those of unlike sides."""
    return sorted(comparison.comparability.reasons, key=lambda r: (r.level != "refused", not r.is_unlike))


def caution_lines(comparison: Comparison) -> list[str]:
    """The reasons of the preflight, one line each."""
    return [f"{r.code} ({r.control} → {r.test}): {r.message}" for r in cautions(comparison)]


def doubt(comparison: Comparison) -> str:
    """What the cautions together mean."""
    return "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable"
