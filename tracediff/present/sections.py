"""The rows of report tables, the same for every output format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.matching.match import LEVELS
from tracediff.diff.ops import HOST_WORK, Op
from tracediff.diff.preflight import Reason
from tracediff.diff.step_time import State
from tracediff.diff.views import Modules, Sum, summed, summed_by
from tracediff.diff.work_changes import WorkChange
from tracediff.formatting import Unit, part, percents, plural, signed_percent, time_unit
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


@dataclass(frozen=True)
class Row:
    """One line of a table; times in µs per step; ``word`` is the significance, empty if untested."""

    name: str
    control_us: float
    test_us: float
    delta_us: float
    control_count: float = 0.0
    test_count: float = 0.0
    word: str = ""


@dataclass(frozen=True)
class WorkRow(Row):
    """One line of matched work.

    Attributes:
        operator: that launched it. kernels: ``old → new``; of other rows what they are called. module: its path.
        shapes: of the operator's inputs. All are empty where unknown.
    """

    operator: str = ""
    kernels: str = ""
    module: str = ""
    shapes: str = ""


NUMBERS = ("control_count", "test_count", "control_us", "test_us", "delta_us")
"""The columns of numbers that every table of work has."""


def numbers(comparison: Comparison, work: Group | WorkChange | Sum) -> dict[str, float]:
    """`NUMBERS` of ``work``: counts and µs per step."""
    times = (work.control, work.test) if isinstance(work, Sum) else (work.control_ns, work.test_ns)
    counts = map(comparison.number, (work.control_count, work.test_count))
    return dict(zip(NUMBERS, (*counts, *map(comparison.us, (*times, work.delta))), strict=True))


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


def step_rows(comparison: Comparison) -> list[Row]:
    """The states that take any time on either side; families of operators the largest first. Families below
    `SMALL_FAMILY` share a row, and so do states below `SMALL_STATE`.
    """
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
    rows = [Row(state_label(s.name, has_gpu), us(s.control), us(s.test), us(s.delta)) for s in shown]
    if len(shown) < len(states):
        control, test = sum(s.control for s in small), sum(s.test for s in small)
        rows.append(Row(name.format(len(small)), us(control), us(test), us(test - control)))
    return rows


@dataclass(frozen=True, kw_only=True)
class Changes:
    """A table of changes. Attributes: title: its heading. rows: the first of them. more: how many are left out."""

    title: str
    rows: list[WorkRow]
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


def host_rows(comparison: Comparison, sort: str, top: int) -> tuple[list[WorkRow], int]:
    """The ``top`` changes of self time on the host, and how many more there are."""
    us, number = comparison.us, comparison.number

    def numbers(op: Op) -> Row:
        times = us(op.control_self), us(op.test_self), us(op.delta)
        return Row("", *times, number(op.control_count), number(op.test_count))

    def row(op: Op, of: Row) -> WorkRow:
        word = "" if op.time_change == "untested" else op.time_change
        return WorkRow(**vars(replace(of, name=op.name, word=word)), kernels=op.name)

    ops = [
        op
        for op in comparison.ops
        if op.category in HOST_WORK and (op.delta or op.control_count != op.test_count or sort != "change")
    ]
    return _first(ops, numbers, row, sort, top), max(len(ops) - top, 0)


def work_rows(comparison: Comparison, sort: str, top: int) -> tuple[list[WorkRow], int]:
    """The ``top`` changes of matched work with its instances merged, and how many more there are."""
    us, number = comparison.us, comparison.number
    words = {op.name: op for op in comparison.ops if op.time_change != "untested"}

    def numbers(change: WorkChange) -> Row:
        times = us(change.control_ns), us(change.test_ns), us(change.delta)
        return Row("", *times, number(change.control_count), number(change.test_count))

    def row(change: WorkChange, of: Row) -> WorkRow:
        return WorkRow(
            **vars(replace(of, name=change.name, word=_word(change, words))),
            operator=change.operator,
            kernels=change.kernels,
            module=change.module,
            shapes=change.shapes,
        )

    found = [
        change
        for change in comparison.work_changes
        if change.delta or change.control_count != change.test_count or sort != "change"
    ]
    return _first(found, numbers, row, sort, top), max(len(found) - top, 0)


Both = tuple[list[int], list[int]]
"""Time and count on control and test, as numerators over the comparison's scale."""


@dataclass(frozen=True, kw_only=True)
class ChangedWork:
    """The work by operator, of work without one by family. Attributes: title: its heading. rows: the first of them.
    others: the sum of the other rows, None without any. whole: all of it. unit: that of the step.
    """

    title: str
    rows: list[Row]
    others: Row | None
    whole: Row
    unit: Unit

    @property
    def parts(self) -> list[Row]:
        """The rows and the others, which add up to the whole."""
        return [*self.rows, *([self.others] if self.others else [])]


def changed_work(comparison: Comparison, top: int) -> ChangedWork:
    """The ``top`` changes of the work by operator, the largest first: all that each side's operators launched, whatever
    it is matched with; rows, others and whole add up.
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
    rows = [_summed(comparison, name, [both], words) for name, both in sums.items()]
    rows.sort(key=lambda row: (-abs(row.delta_us), row.name))
    steps = comparison.us(comparison.step_time.control), comparison.us(comparison.step_time.test)
    top = min(top, sum(abs(row.delta_us) >= LEAST_CHANGE * max(steps) for row in rows))
    left = [sums[row.name] for row in rows[top:]]
    others = _summed(comparison, plural(len(rows) - top, "other"), left, {}) if top and left else None
    return ChangedWork(
        title="GPU work by operator" if has_gpu else "Operators (self time)",
        rows=rows[:top],
        others=others,
        whole=_summed(comparison, "all GPU work" if has_gpu else "all operators", [*sums.values()], {}),
        unit=time_unit(steps),
    )


def _summed(comparison: Comparison, name: str, parts: Sequence[Both], tested: dict[str, Op]) -> Row:
    us, number = comparison.us, comparison.number
    (control, test), events = ([sum(part[k][side] for part in parts) for side in (0, 1)] for k in (0, 1))
    word = op.time_change if (op := tested.get(name)) else ""
    return Row(name, us(control), us(test), us(test - control), number(events[0]), number(events[1]), word)


def _word(change: WorkChange, tested: dict[str, Op]) -> str:
    """The significance of the only kernel or operator of ``change``, if most of what changed of it is here."""
    op = tested.get(change.kernels or change.operator)
    return op.time_change if op and change.delta * op.delta > 0 and abs(change.delta) >= MOST * abs(op.delta) else ""


def _first(
    items: Sequence[T], numbers: Callable[[T], Row], row: Callable[[T, Row], WorkRow], sort: str, top: int
) -> list[WorkRow]:
    """The first ``top`` rows of ``items`` in the order ``sort``: only those get a name that may be among them by their
    ``numbers``, since names are costly where there are many.
    """
    rows = [numbers(item) for item in items]
    places = [SORTS[sort](of) for of in rows]
    last = max(sorted(places)[:top], default=0.0)
    chosen = [row(item, of) for item, of, place in zip(items, rows, places, strict=True) if place <= last]
    return sorted(chosen, key=lambda of: (SORTS[sort](of), of.name))[:top]


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


def view_rows(comparison: Comparison, view: str, top: int, modules: Modules = ALL_MODULES) -> tuple[list[WorkRow], int]:
    """The ``top`` lines of a view of the work, and how many more there are; ``modules`` says how modules are summed."""
    lines = summed_by(comparison.work, modules) if view == "module" else summed(comparison.work, view)
    us, number = comparison.us, comparison.number
    rows = [
        WorkRow(
            s.name,
            us(s.control),
            us(s.test),
            us(s.delta),
            number(s.control_count),
            number(s.test_count),
            kernels="" if view == "module" else s.name,
            module=s.name if view == "module" else "",
        )
        for s in lines[:top]
    ]
    return rows, max(len(lines) - top, 0)


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
    gpu, us = comparison.gpu_time, comparison.us
    events = [sum(g.control_count for g in gpu.groups), sum(g.test_count for g in gpu.groups)]
    return Row(
        "GPU time",
        us(gpu.control),
        us(gpu.test),
        us(gpu.delta),
        comparison.number(events[0]),
        comparison.number(events[1]),
    )


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
