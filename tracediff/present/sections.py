"""The rows of report tables, the same for every output format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import TypeVar

from tracediff import bounds, thresholds
from tracediff.diff.accounts import State
from tracediff.diff.comparison import Comparison
from tracediff.diff.matching.items import LEVELS
from tracediff.diff.ops import HOST_WORK, Op
from tracediff.diff.preflight import Reason
from tracediff.diff.views import ALL_MODULES, UNKNOWN, Modules, Sum, WorkChange, kernels_of, summed, summed_by
from tracediff.explain.leaves import COMPILED_CODE, HOST
from tracediff.formatting import (
    Unit,
    change_and_delta,
    closing,
    counts,
    part,
    percents,
    plural,
    signed_percent,
    time_unit,
    with_decimals_of,
    with_digits,
)
from tracediff.present.path import is_visible
from tracediff.profile.events.step_states import state_label
from tracediff.structs import Amounts, FrozenStruct, Pair, side_sums, total

ONE_SIDED = "added or removed"
T = TypeVar("T", Op, WorkChange)


class ReportRow(FrozenStruct, kw_only=True):
    """One line of a table; times in µs per step, counts per step.

    Attributes:
        time_change: its significance, empty if untested.
        operator: that launched matched work. kernels: ``old → new``; of other rows what they are called. module: its
            path. shapes: of the operator's inputs. All are empty where unknown.
    """

    name: str
    us: Pair[float]
    delta_us: float
    count: Pair[float] = Pair(0.0, 0.0)
    time_change: str = ""
    operator: str = ""
    kernels: str = ""
    module: str = ""
    shapes: str = ""

    def times(self, unit: Unit) -> list[str]:
        """Control, test and change."""
        return [*map(unit.plain, self.us), unit.signed(self.delta_us)]

    def cells(self, unit: Unit) -> list[str]:
        """Counts, control, test and change."""
        return [counts(*self.count), *self.times(unit)]


class Changes(FrozenStruct, kw_only=True):
    """A table of changes. Attributes: title: its heading. rows: the first of them. more: how many are left out."""

    title: str
    rows: list[ReportRow]
    more: int = 0


class Sums(Changes, kw_only=True):
    """A table of rows that add up to `whole`, in one unit; ``counted`` is what their counts are of. Times are rounded
    to what is shown, so that columns add up and changes are differences as they are read.
    """

    whole: ReportRow
    unit: Unit
    counted: str = "count"


def _sums(title: str, rows: Sequence[ReportRow], whole: ReportRow, unit: Unit, counted: str = "count") -> Sums:
    control, test = (closing(unit, [row.us[k] for row in rows], whole.us[k]) for k in (0, 1))
    return Sums(
        title=title,
        rows=[_with_times(row, Pair(*times)) for row, *times in zip(rows, control, test, strict=True)],
        whole=_with_times(whole, whole.us.map(unit.rounded)),
        unit=unit,
        counted=counted,
    )


def _with_times(row: ReportRow, us: Pair[float]) -> ReportRow:
    return row.replace(us=us, delta_us=us.delta)


SORTS: dict[str, Callable[[Op | WorkChange], float]] = {
    "change": lambda work: -abs(work.delta),
    "slower": lambda work: -work.delta,
    "faster": lambda work: work.delta,
    "control": lambda work: -work.time.control,
    "test": lambda work: -work.time.test,
    "count": lambda work: -abs(work.count.delta),
    "name": lambda _: 0.0,
}
"""Orders of the tables of changes by their numbers; those equal in them are in order of name."""


def step_sums(comparison: Comparison) -> Sums:
    """The states that take any time on either side; families of operators the largest first. Small families
    share a row, and so do small states.
    """
    name = "whole file" if comparison.is_whole_file else "step"
    whole = _row(comparison, Amounts(comparison.step_time.period), name=name)
    rows = _step_rows(comparison)
    unit = with_digits(time_unit(whole.us), (row.delta_us for row in rows))
    return _sums("Where the step went", rows, whole, unit)


def unexplained_ns(comparison: Comparison) -> str:
    """What the states leave unexplained of the step's change: 0."""
    return f"{comparison.step_time.residual / comparison.scale:g}"


def _step_rows(comparison: Comparison) -> list[ReportRow]:
    states = [s for s in comparison.step_time.states if any(s.time)]
    families = sorted((s for s in states if s.name.startswith("op:")), key=lambda s: -max(s.time))
    others = [s for s in states if s not in families]
    return [
        *_with_small_in_one(comparison, families, thresholds.SMALL_FAMILY, "op: {} smaller families"),
        *_with_small_in_one(comparison, others, thresholds.SMALL_STATE, "{} smaller states"),
    ]


def _with_small_in_one(comparison: Comparison, states: list[State], least: float, name: str) -> list[ReportRow]:
    """A row per state; the states below the fraction ``least`` of the step on both sides, if several, in a last one."""
    small = [s for s in states if max(s.time) < least * max(comparison.step_time.period)]
    separate = [s for s in states if s not in small] if len(small) > 1 else states
    times = [(state_label(s.name, comparison.has_gpu), s.time) for s in separate]
    if len(separate) < len(states):
        times.append((name.format(len(small)), total(s.time for s in small)))
    return [_row(comparison, Amounts(both), name=label) for label, both in times]


def changes(comparison: Comparison, device: str | None, sort: str, top: int) -> list[Changes]:
    """The tables of changes: matched work (``gpu``; operators where there is no GPU) and, where there is a GPU, self
    time on the host (``cpu``); both where ``device`` is None or all.
    """
    has_gpu, words = bool(comparison.gpu_time.groups), {op.name: op for op in comparison.ops if op.significance.word}

    def work(change: WorkChange) -> ReportRow:
        names = {name: getattr(change, name) for name in ("name", "operator", "kernels", "module", "shapes")}
        return _row(comparison, change, time_change=_significance(change, words), **names)

    def on_host(op: Op) -> ReportRow:
        return _row(comparison, op, name=op.name, kernels=op.name, time_change=op.significance.word)

    tables = []
    if device != "cpu" or not has_gpu:
        title = "Changes by work" if sort == "change" else f"Work, sorted by {sort}"
        tables.append(_changes(title if has_gpu else f"{title}, on the host", comparison.work_changes, work, sort, top))
    if device != "gpu" and has_gpu:
        ops = [op for op in comparison.ops if op.category in HOST_WORK]
        first = "Largest changes on the host (self time)"
        title = first if sort == "change" else f"Work on the host (self time), sorted by {sort}"
        tables.append(_changes(title, ops, on_host, sort, top))
    return tables


def _changes(title: str, items: Sequence[T], row: Callable[[T], ReportRow], sort: str, top: int) -> Changes:
    """The first ``top`` rows of ``items`` in the order ``sort``: only those get a name that may be among them by their
    numbers, since names are costly where there are many.
    """
    changed = [item for item in items if item.delta or item.count.delta or sort != "change"]
    places = [SORTS[sort](item) for item in changed]
    last = max(sorted(places)[:top], default=0.0)
    placed_rows = [(place, row(item)) for item, place in zip(changed, places, strict=True) if place <= last]
    placed_rows.sort(key=lambda pair: (pair[0], pair[1].name))
    return Changes(
        title=title, rows=[row_of_item for _, row_of_item in placed_rows[:top]], more=max(len(changed) - top, 0)
    )


def changed_work(comparison: Comparison, top: int) -> Sums:
    """The ``top`` changes of the work by operator, of work without one by family, the largest first: all that each
    side's operators launched, as far as their time or number changed; of GPU work that many operators changed a little
    of, by family. The last row is the others, which have no operator. Times are rounded before any row is left out:
    however many are shown, each reads the same.
    """
    has_gpu = bool(comparison.gpu_time.groups)
    sums = _by_family_if_clearer(comparison) if has_gpu else comparison.work_by_operator
    steps, changes = comparison.step_time.period.map(comparison.us), [comparison.us(line.delta) for line in sums]
    whole = _together(comparison, "all GPU work" if has_gpu else f"all {_operators(comparison)}", sums)
    unit = with_decimals_of(time_unit(steps), max(whole.us))
    rows = [_row(comparison, line, name=line.name, operator=line.name) for line in sums]
    least = thresholds.CHANGED_WORK * max(steps)
    digits = with_digits(unit, changes)
    is_changed = (abs(us) >= least or work.count.delta for us, work in zip(changes, sums, strict=True))
    changed = [k for k, is_row in enumerate(is_changed) if is_row and is_visible(changes[k], digits)][:top]
    others = sorted({*range(len(sums))}.difference(changed)) if changed else []
    title = _title_of_work(comparison, [sums[k].name for k in changed])
    every = _sums(title, rows, whole, digits, "events" if has_gpu else "calls")
    last = _together(comparison, plural(len(others), "other"), [sums[k] for k in others])
    us = total(every.rows[k].us for k in others)
    return every.replace(rows=[*(every.rows[k] for k in changed), *([_with_times(last, us)] if others else [])])


def _by_family_if_clearer(comparison: Comparison) -> Sequence[Sum]:
    """GPU work by operator, or where the first operators are less than half of what changed, by family if more of it is
    in the first families.
    """
    views = comparison.work_by_operator, summed_by(comparison.work, lambda work: kernels_of(work.family))
    changes = ([abs(line.delta) for line in view] for view in views)
    operators, families = (sum(ns[: bounds.WORK_ROWS]) / max(sum(ns), 1) for ns in changes)
    return views[operators < thresholds.MOSTLY and operators < families]


def _title_of_work(comparison: Comparison, names: Sequence[str]) -> str:
    """What the rows of `changed_work` with these ``names`` are."""
    families = {kernels_of(member.family) for group in comparison.work.groups for member in chain(*group.members)}
    of_families = sum(name in families for name in names)
    grouping = "operator" if not of_families else "family" if of_families == len(names) else "operator or family"
    on_host = f"{_operators(comparison).capitalize()} (self time)"
    return f"{f'GPU work by {grouping}' if comparison.gpu_time.groups else on_host}{_of_ranks(comparison)}"


def _of_ranks(comparison: Comparison) -> str:
    """``, mean of 8 ranks``, which the explanation is not of; empty of one rank."""
    ranks = comparison.explanation.ranks if comparison.explanation is not None else 1
    return f", mean of {ranks} ranks" if ranks > 1 else ""


def _operators(comparison: Comparison) -> str:
    """What the work of a CPU is, in which the explanation tells compiled code apart."""
    parts = comparison.explanation.root.children if comparison.explanation is not None else {}
    is_compiled = HOST in parts and COMPILED_CODE in parts[HOST].children
    return f"operators{', compiled code' if is_compiled else ''}"


def _together(comparison: Comparison, name: str, lines: Sequence[Sum]) -> ReportRow:
    whole = Amounts(total(line.time for line in lines), total(line.count for line in lines))
    return _row(comparison, whole, name=name)


def _row(comparison: Comparison, work: Op | WorkChange | Amounts, **texts: str) -> ReportRow:
    us, number = comparison.us, comparison.number
    return ReportRow(us=work.time.map(us), delta_us=us(work.time.delta), count=work.count.map(number), **texts)


def _significance(change: WorkChange, tested: dict[str, Op]) -> str:
    """The significance of the only kernel or operator of ``change``, if most of what changed of it is here."""
    op = tested.get(change.kernels or change.operator)
    same_sign = op is not None and change.delta * op.delta > 0
    return (
        op.significance.word if op and same_sign and abs(change.delta) >= thresholds.TESTED_ROW * abs(op.delta) else ""
    )


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


def work_by(comparison: Comparison, view: str, top: int, modules: Modules = ALL_MODULES) -> Changes:
    """The ``top`` lines of a view of the work; ``modules`` says how modules are summed."""
    lines = summed(comparison.work, view, modules)
    name_column = "module" if view == "module" else "kernels"
    work = "GPU time" if comparison.gpu_time.groups else "Operator self time"
    return Changes(
        title=f"{work} {BY_TITLES[view]}{_of_ranks(comparison)}",
        rows=[_row(comparison, line, name=line.name, **{name_column: line.name}) for line in lines[:top]],
        more=max(len(lines) - top, 0),
    )


class ChangedModule(FrozenStruct):
    """A module. Attributes: name: its path. how: ``regressed`` or ``saved``. times: its instances, and its own time."""

    name: str
    how: str
    times: str


def changed_module(comparison: Comparison) -> ChangedModule | None:
    """The module whose own work regressed most; where none did, that saved most; None where no module is known."""
    modules = [line for line in summed(comparison.work, "module") if line.name != UNKNOWN]
    most = max(modules, key=lambda line: (line.delta > 0, abs(line.delta)), default=None)
    if most is None:
        return None
    number = comparison.module_instances[most.name]
    instances = f" ({number} instances)" if number > 1 else ""
    times = f"{instances}: {change_and_delta(*most.time.map(comparison.us))}"
    return ChangedModule(most.name, "regressed" if most.delta > 0 else "saved", times)


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
    whole = sum(sum(g.time) for g in work.groups)
    parts: Counter[str] = Counter()
    for group in work.groups:
        parts[{"added": ONE_SIDED, "removed": ONE_SIDED}.get(group.level, group.level)] += sum(group.time)
    level_parts = [f"{level} {part(parts[level], whole)}" for level in (*LEVELS, ONE_SIDED) if parts[level]]
    return f"{plural(len(work.groups), 'group')} of work: {', '.join(level_parts)}" if whole else ""


def common_line(comparison: Comparison) -> str | None:
    """The change that all tested operators have in common; None if none was tested."""
    if not any(op.significance.p_value is not None for op in comparison.ops):
        return None
    return f"change common to all tested operators: {signed_percent(comparison.common_change)} (median)"


def health_lines(comparison: Comparison, codes: Collection[str] | None = None) -> list[str]:
    """Health notes with both sides' counts, equal ones once, of very many the first; with ``codes`` only those."""
    notes = [(note, which) for which, side in enumerate(comparison.sides) for note in side.notes]
    counts_of_note = side_sums(((note.code, note.message), which, (note.count,)) for note, which in notes)
    return first_notes(
        [
            f"{code} ({control:,} → {test:,}): {message}"
            for (code, message), ((control, test),) in counts_of_note.items()
            if codes is None or code in codes
        ]
    )


def first_notes(lines: list[str]) -> list[str]:
    """The first of ``lines``, and how many more there are."""
    more = len(lines) - bounds.NOTES
    return [*lines[: bounds.NOTES], f"{more:,} more notes; --json lists all"] if more > 0 else lines


def cautions(comparison: Comparison) -> list[Reason]:
    """The reasons of the preflight: those that refuse the comparison first, then those of unlike sides."""
    return sorted(comparison.comparability.reasons, key=lambda r: (r.level != "refused", not r.is_unlike))


def caution_lines(comparison: Comparison) -> list[str]:
    """The reasons of the preflight, one line each."""
    return [f"{r.code} ({r.control} → {r.test}): {r.message}" for r in cautions(comparison)]


def doubt(comparison: Comparison) -> str:
    """What the cautions together mean."""
    return "Compared with caution" if comparison.comparability.level == "caution" else "Not comparable"
