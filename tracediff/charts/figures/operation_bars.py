"""Bars of operations and of names: counts and durations of both sides, and their difference. The pair of figures that
HTA's users know, of a comparison and over HTA's frame; and what the host spends on calls into the GPU's runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tracediff import bounds
from tracediff.charts.labels import both_names, choice, full_name, label, not_compared, safe, side_names
from tracediff.charts.marks import data_array, hovers, name_rows, named_ticks, split
from tracediff.charts.theme import Palette, empty, finish, palette
from tracediff.diff.comparison import Comparison
from tracediff.diff.ops import GPU_WORK, HOST_WORK, Op
from tracediff.errors import TracediffError
from tracediff.formatting import Unit, change, counts, plural, signed_count, signed_time, time_unit
from tracediff.present.plain_text import shortened_pairs
from tracediff.runtimes import CALL_CATEGORIES
from tracediff.structs import SIDES, FrozenStruct, Pair, total

if TYPE_CHECKING:
    import pandas as pd


class Bar(FrozenStruct):
    """One operation, in events or µs per step."""

    op: Op
    amount: Pair[float]

    @property
    def delta(self) -> float:
        """test − control."""
        return self.amount.delta


SORTS: dict[str, Callable[[Bar], float | str]] = {
    "change": lambda b: -abs(b.delta),
    "increase": lambda b: -b.delta,
    "decrease": lambda b: b.delta,
    "control": lambda b: -b.amount.control,
    "test": lambda b: -b.amount.test,
    "name": lambda b: b.op.name,
}
"""Orders of the bars."""


def ops_of(comparison: Comparison, device: str | None) -> tuple[str, list[Op]]:
    """``device``, by default gpu where there is any work on it, and its operations: GPU work, or operators and runtime
    calls.

    Raises:
        TracediffError: neither gpu nor cpu.
    """
    ops = {"gpu": GPU_WORK, "cpu": HOST_WORK}
    every = {key: [op for op in comparison.ops if op.category in work] for key, work in ops.items()}
    if device is None:
        device = "gpu" if every["gpu"] else "cpu"
    return device, every[choice("device", device, every)]


def draw_op_bars(
    comparison: Comparison, bars: list[Bar], what: str, unit: Unit | None, top: int, sort: str, theme: str
) -> go.Figure:
    """Three bars per operation on one axis: control, test and difference.

    Args:
        what: the bars measure, in words. unit: of times; None for counts.
    """
    key = SORTS[choice("sort", sort, SORTS)]
    displayed = sorted(bars, key=lambda b: (key(b), b.op.raw_name))[: max(min(top, bounds.ALL_OP_BARS), 0)]
    displayed = [b for b in displayed if b.delta or sort not in ("change", "increase", "decrease")]
    if not displayed:
        sentence = f"{what}: nothing changed." if bars else "There are no operations on this device."
        return empty(theme, not_compared(comparison) or sentence)
    figure = go.Figure()
    for group, name, colour, values in _groups(comparison, displayed, palette(theme), is_time=unit is not None):
        if values:
            figure.add_bar(
                name=name,
                orientation="h",
                offsetgroup=group,
                y=list(values),
                x=[unit.scaled(value) if unit else value for value in values.values()],
                marker_color=colour,
                **hovers(_hover(comparison, displayed[row].op) for row in values),
            )
    name_rows(figure, [label(name) for name in shortened_pairs([b.op.name for b in displayed], bounds.CHART_LABEL)])
    per = comparison.basis
    axis = f"time {per} ({unit.name})" if unit else f"count {per}"
    figure.update_xaxes(title_text=axis, rangemode="tozero")
    figure.update_layout(barmode="group")
    return finish(
        figure,
        theme,
        _title(displayed, f"{what} {per}", unit),
        _subtitle(len(displayed), len(bars), sort),
        80 + 36 * len(displayed),
    )


def _groups(
    comparison: Comparison, displayed: list[Bar], colours: Palette, is_time: bool
) -> Iterator[tuple[str, str, str, dict[int, float]]]:
    """(group, legend entry, colour, row → value) of the bars of each colour."""
    amounts = zip(*(b.amount for b in displayed), strict=True)
    for group, name, colour, values in zip(SIDES, side_names(comparison), colours.sides, amounts, strict=True):
        yield group, name, colour, dict(enumerate(values))
    deltas = {row: b.delta for row, b in enumerate(displayed)}
    if is_time:
        yield "difference", "difference: slower", colours.slower, {row: d for row, d in deltas.items() if d > 0}
        yield "difference", "difference: faster", colours.faster, {row: d for row, d in deltas.items() if d < 0}
    else:
        yield "difference", "difference", colours.neutral, deltas


def _hover(comparison: Comparison, op: Op) -> str:
    us, number = comparison.us, comparison.number
    significance = f"<br>significance: {op.significance.word}" if op.significance.word else ""
    return (
        f"{both_names(op.name, op.raw_name)}<br>{label(op.family)}"
        f"<br>count {counts(*op.count.map(number))}"
        f"<br>self time {change(*op.self_time.map(us))} "
        f"({signed_time(us(op.delta))}){significance}"
    )


def _title(displayed: list[Bar], what: str, unit: Unit | None) -> str:
    largest = max(displayed, key=lambda b: abs(b.delta))
    delta = signed_time(largest.delta) if unit else signed_count(largest.delta)
    name = largest.op.name if len(largest.op.name) <= 40 else f"{largest.op.name[:39]}…"
    return f"{what[:1].upper()}{what[1:]}: {name} changed most ({delta})"


def _subtitle(displayed: int, total: int, sort: str) -> str:
    orders = {
        "change": "largest change first",
        "increase": "largest increase first",
        "decrease": "largest decrease first",
        "name": "by name",
    }
    which = plural(total, "operation") if displayed == total else f"{displayed:,} of {plural(total, 'operation')}"
    return f"{which}, {orders.get(sort, f'largest in {sort} first')}."


def duration_diff(
    comparison: Comparison,
    top: int = bounds.OP_BARS,
    sort: str = "change",
    device: str | None = None,
    time: str = "self",
    *,
    theme: str = "light",
) -> go.Figure:
    """Time of each operation per step on both sides, and the difference.

    Args:
        top: how many. sort: one of SORTS.
        device: gpu or cpu; by default gpu where there is any.
        time: ``self`` (without what it calls) or ``total``; on the GPU they are the same.
    """
    device, ops = ops_of(comparison, device)
    choice("time", time, ("self", "total"))
    bars = [Bar(op, (op.self_time if time == "self" else op.total).map(comparison.us)) for op in ops]
    what = "GPU time" if device == "gpu" else f"{time} time on the host"
    unit = time_unit(v for b in bars for v in b.amount)
    return draw_op_bars(comparison, bars, what, unit, top, sort, theme)


def counts_diff(
    comparison: Comparison,
    top: int = bounds.OP_BARS,
    sort: str = "change",
    device: str | None = None,
    *,
    theme: str = "light",
) -> go.Figure:
    """Occurrences of each operation per step on both sides, and the difference. Arguments as `duration_diff`."""
    device, ops = ops_of(comparison, device)
    bars = [Bar(op, op.count.map(comparison.number)) for op in ops]
    what = f"Count of {'GPU events' if device == 'gpu' else 'operators and runtime calls'}"
    return draw_op_bars(comparison, bars, what, None, top, sort, theme)


DURATION = "_total_duration"


def frame_counts_diff(frame: pd.DataFrame, top: int | None = None) -> go.Figure:
    """Occurrences of each name on both sides, and their difference.

    Args:
        frame: from `tracediff.hta.TraceDiff.compare_traces` (or HTA's own), filtered and ordered at will.
        top: draw only the names whose counts changed most, in the frame's order.

    Raises:
        TracediffError: the frame has not two sides.
    """
    return _grouped_bars(frame, top, ("_counts", "diff_counts"), "Counts by name", "count")


def frame_duration_diff(frame: pd.DataFrame, top: int | None = None) -> go.Figure:
    """Total duration of each name on both sides in µs, and their difference. Arguments as `frame_counts_diff`."""
    return _grouped_bars(frame, top, (DURATION, "diff_duration"), "Total duration by name", "total duration (µs)")


def _grouped_bars(frame: pd.DataFrame, top: int | None, ends: tuple[str, str], title: str, unit: str) -> go.Figure:
    suffix, difference = ends
    columns = {**{side: side + suffix for side in _labels(frame)}, "Difference": difference}
    rows = _most_changed(frame, difference, top)
    names = [safe(str(name)) for name in rows.index]
    bars: list[Any] = [
        go.Bar(
            name=safe(side),
            x=list(range(len(names))),
            y=rows[column].tolist(),
            customdata=data_array(names),
            hovertemplate="%{customdata}<br>%{y:,}",
        )
        for side, column in columns.items()
    ]
    if len(rows) < len(frame):
        title += f": the {len(rows)} of {len(frame)} that changed most"
    ticks = [label(str(name), bounds.CHART_TICK) for name in rows.index]
    figure = go.Figure(bars)
    figure.update_layout(barmode="group", title_text=title, yaxis_title=unit)
    figure.update_xaxes(**named_ticks(ticks), automargin=True)
    return figure


def _labels(frame: pd.DataFrame) -> list[str]:
    """The two sides' labels, control first."""
    labels = [column.removesuffix(DURATION) for column in frame.columns if column.endswith(DURATION)]
    if len(labels) != 2:
        reason = f"has {len(labels)} columns that end in {DURATION}, not 2"
        raise TracediffError("the frame", reason, "give a frame from TraceDiff.compare_traces")
    return labels


def _most_changed(frame: pd.DataFrame, difference: str, top: int | None) -> pd.DataFrame:
    """The ``top`` rows with the largest absolute difference, in the frame's order."""
    if top is None or len(frame) <= top:
        return frame
    order = frame[difference].abs().to_numpy().argsort(kind="stable")[::-1][:top]
    return frame.iloc[sorted(order)]


class CallTimes(FrozenStruct):
    """Runtime calls of one name per step, times in µs; ``full`` is safe, ``name`` plain."""

    name: str
    full: str
    counts: Pair[float]
    us: Pair[float]


def launches(comparison: Comparison, top: int = bounds.LAUNCH_BARS, *, theme: str = "light") -> go.Figure:
    """Runtime calls of the host (launches, copies, synchronisations): how many per step, and their time; the ``top`` by
    time, the rest as one.
    """
    ops = [op for op in comparison.ops if op.category in CALL_CATEGORIES and any(op.count)]
    if not ops:
        return empty(theme, not_compared(comparison) or "The traces contain no runtime calls.")
    rows = _rows(comparison, ops, max(top, 1))
    unit = time_unit(v for row in rows for v in row.us)
    figure = make_subplots(2, 1, vertical_spacing=70 / (110 + 60 * len(rows)))
    colours = palette(theme)
    for side, (name, colour) in enumerate(zip(side_names(comparison), colours.sides, strict=True)):
        _side(figure, rows, side, name, colour, unit)
    name_rows(figure, [label(row.name) for row in rows])
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title_text=f"calls {comparison.basis}", row=1, col=1)
    figure.update_xaxes(title_text=f"host time {comparison.basis} ({unit.name})", row=2, col=1)
    figure.update_layout(barmode="group")
    return finish(
        figure,
        theme,
        _launches_title(comparison, ops),
        "Synchronising calls wait for the GPU, so their time is not host work.",
        170 + 60 * len(rows),
    )


def _rows(comparison: Comparison, ops: list[Op], top: int) -> list[CallTimes]:
    us, number = comparison.us, comparison.number
    ordered = sorted(ops, key=lambda op: (-max(op.self_time), op.raw_name))
    first, rest = split(ordered, top)
    names = [(op.name, both_names(op.name, op.raw_name), [op]) for op in first]
    if rest:
        names.append((f"{len(rest)} others", full_name(", ".join(op.name for op in rest)), rest))
    return [
        CallTimes(name, full, total(op.count for op in same).map(number), total(op.self_time for op in same).map(us))
        for name, full, same in names
    ]


def _side(figure: go.Figure, rows: list[CallTimes], side: int, name: str, colour: str, unit: Unit) -> None:
    texts = [
        f"{row.full}<br>{counts(*row.counts)} calls<br>{change(*row.us)} ({signed_time(row.us.delta)})" for row in rows
    ]
    for panel, values in ((1, [row.counts[side] for row in rows]), (2, [unit.scaled(row.us[side]) for row in rows])):
        figure.add_bar(
            name=name,
            orientation="h",
            legendgroup=str(side),
            offsetgroup=str(side),
            showlegend=panel == 1,
            y=list(range(len(rows))),
            x=values,
            marker_color=colour,
            **hovers(texts),
            row=panel,
            col=1,
        )


def _launches_title(comparison: Comparison, ops: list[Op]) -> str:
    us, number = comparison.us, comparison.number
    calls, times = total(op.count for op in ops).map(number), total(op.self_time for op in ops).map(us)
    return f"Runtime calls {comparison.basis}: {counts(*calls)}, {change(*times)}"
