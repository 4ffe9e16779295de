"""The contents of an analysis report, in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tracediff.aggregate.number_ranges import ranges
from tracediff.aggregate.side import Side
from tracediff.analysis.analysis import Analysis
from tracediff.analysis.shares import Operation, Share
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.formatting import PERCENT, count, percent, plural, time, time_unit
from tracediff.ingest.unread import shortened, unread_devices
from tracediff.present.plain_table import Table
from tracediff.present.sections import BY_TITLES, SMALL_FAMILY, first_notes
from tracediff.present.sentences import hardware, not_recorded, steps_used
from tracediff.present.tables import one_sided
from tracediff.profile.step_states import state_label

TOP = 15
"""Rows of a table by default."""


@dataclass(frozen=True)
class Head:
    """The lines above the tables: the set's name, its runs and steps, its step time, and a caution or nothing."""

    title: str
    facts: str
    step: str
    caution: str = ""


def head(analysis: Analysis) -> Head:
    """The first lines."""
    side = analysis.side
    period = analysis.us(analysis.period)
    step = f"{time(period)} per step"
    if side.has_gpu:
        work, busy = analysis.us(analysis.work), analysis.us(analysis.busy)
        busy_too = f", GPU busy {time(busy)}" if time(busy) != time(work) else ""
        step += f"; GPU time {time(work)}{busy_too}"
    if analysis.tensor_cores:
        step += f"; {percent(analysis.tensor_cores)} of kernel time on tensor cores"
    return Head(side.label, " · ".join(_facts(side)), step, _caution(side))


def _caution(side: Side) -> str:
    unread = unread_devices(side.notes)
    rest = "" if side.has_gpu else ": this is the host's side only"
    if unread:
        return f"Caution: device events ({shortened(unread)}) are not read{rest}"
    return f"Caution: {not_recorded(side)}{rest}" if side.unrecorded_launches else ""


def health_lines(analysis: Analysis, codes: Collection[str] | None = None) -> list[str]:
    """Health notes, one line each, of very many the first; with ``codes`` only those."""
    notes = [n for n in analysis.side.notes if codes is None or n.code in codes]
    return first_notes([f"{n.message} ({n.code}: {n.count:,})" for n in notes])


def _facts(side: Side) -> list[str]:
    facts = [hardware(side), plural(side.runs, "run")]
    if len(side.ranks) > 1:
        facts.append(f"ranks {ranges(side.ranks)} (step: the slowest, work: the mean)")
    return [*facts, steps_used(side)]


def tables_of(analysis: Analysis, top: int | None = None, names: Sequence[str] = ()) -> dict[str, Table]:
    """Key → table, in order; where ``names`` are given only those."""
    top = TOP if top is None else top
    out = {"states": _states(analysis)}
    for device, title, work in (
        ("gpu", "Work on the GPU", GPU_WORK),
        ("cpu", "Operators and runtime calls on the host, by self time", HOST_WORK),
    ):
        rows = [o for o in analysis.operations if o.category in work]
        if rows:
            out[device] = _operations(analysis, title, rows, top)
    what = "GPU time" if analysis.side.has_gpu else "Operator self time"
    for view in ("family", "phase", "module", "op"):
        out[view] = _shares(analysis, f"{what} {BY_TITLES[view]}", view, analysis.views[view], top)
    for schema, lines in analysis.tables:
        out[schema.name] = one_sided(
            schema, [(key, [n / analysis.scale for n in row]) for key, row in lines], analysis.side.gpu, top
        )
    return {key: table for key, table in out.items() if not names or key in names}


def _states(analysis: Analysis) -> Table:
    """In the order of a comparison: families of operators the largest first, the smallest of them in one row."""
    states = [s for s in analysis.states if s.ns]
    families = sorted((s for s in states if s.name.startswith("op:")), key=lambda s: -s.ns)
    small = [s for s in families if s.ns < SMALL_FAMILY * analysis.period]
    left_out = small if len(small) > 1 else []
    shown = [s for s in (*families, *(s for s in states if s not in families)) if s not in left_out]
    times = [(state_label(s.name, analysis.side.has_gpu), s.ns) for s in shown]
    if left_out:
        place = len(families) - len(left_out)
        times.insert(place, (f"op: {len(left_out)} smaller families", sum(s.ns for s in left_out)))
    times.append(("step", sum(s.ns for s in states)))
    unit = time_unit([analysis.us(analysis.period)])
    rows = [(name, unit.plain(analysis.us(ns)), _part(ns, analysis.period)) for name, ns in times]
    return Table("Where the step goes", "", heads=("state", f"time ({unit.name})", "share"), texts=1, rows=tuple(rows))


def _operations(analysis: Analysis, title: str, rows: Sequence[Operation], top: int) -> Table:
    unit = time_unit([analysis.us(o.total) for o in rows])
    shown = tuple(
        (
            o.name,
            o.family,
            count(analysis.number(o.count)),
            unit.plain(analysis.us(o.self_ns)),
            unit.plain(analysis.us(o.total)),
            _part(o.self_ns, analysis.period),
        )
        for o in rows[:top]
    )
    return Table(
        title,
        "",
        heads=("name", "family", "count", f"self ({unit.name})", "total", "share of step"),
        texts=2,
        rows=shown,
        more=len(rows) - len(shown),
    )


def _shares(analysis: Analysis, title: str, view: str, rows: Sequence[Share], top: int) -> Table:
    unit = time_unit([analysis.us(s.ns) for s in rows])
    shown = tuple(
        (s.name, count(analysis.number(s.count)), unit.plain(analysis.us(s.ns)), _part(s.ns, analysis.work))
        for s in rows[:top]
    )
    return Table(
        title,
        "",
        heads=(view, "count", f"time ({unit.name})", "share"),
        texts=1,
        rows=shown,
        more=len(rows) - len(shown),
    )


def _part(ns: int, total: int) -> str:
    return PERCENT.text(ns / total) if total else "–"
