"""What the host spends on calls into the GPU's runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.charts.labels import both_names, full_name, label, not_compared, side_names
from tracediff.charts.marks import hovers
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import Unit, change, counts, signed_time, time_unit
from tracediff.runtimes import CALL_CATEGORIES

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison
    from tracediff.diff.ops import Op

TOP = 12


@dataclass(frozen=True)
class Calls:
    """Runtime calls of one name: (control, test) per step, times in µs; ``full`` is safe, ``name`` plain."""

    name: str
    full: str
    counts: tuple[float, float]
    us: tuple[float, float]


def launches(comparison: Comparison, top: int = TOP, *, theme: str = "light") -> go.Figure:
    """Runtime calls of the host (launches, copies, synchronisations): how many per step, and their time; the ``top`` by
    time, the rest as one.
    """
    from plotly.subplots import make_subplots

    ops = [op for op in comparison.ops if op.category in CALL_CATEGORIES and (op.control_count or op.test_count)]
    if not ops:
        return empty(theme, not_compared(comparison) or "The traces contain no runtime calls.")
    rows = _rows(comparison, ops, max(top, 1))
    unit = time_unit(v for row in rows for v in row.us)
    figure = make_subplots(2, 1, vertical_spacing=70 / (110 + 60 * len(rows)))
    colours = palette(theme)
    for side, (name, colour) in enumerate(zip(side_names(comparison), colours.sides, strict=True)):
        _side(figure, rows, side=side, name=name, colour=colour, unit=unit)
    ticks = [label(row.name) for row in rows]
    figure.update_yaxes(
        tickmode="array", tickvals=list(range(len(rows))), ticktext=ticks, range=[len(rows) - 0.4, -0.6], showgrid=False
    )
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title_text="calls per step", row=1, col=1)
    figure.update_xaxes(title_text=f"host time per step ({unit.name})", row=2, col=1)
    figure.update_layout(barmode="group")
    return finish(
        figure,
        theme,
        _title(comparison, ops),
        "Synchronising calls wait for the GPU, so their time is not host work.",
        170 + 60 * len(rows),
    )


def _rows(comparison: Comparison, ops: list[Op], top: int) -> list[Calls]:
    us, number = comparison.us, comparison.number
    ordered = sorted(ops, key=lambda op: (-max(op.control_self, op.test_self), op.raw_name))
    cut = top if len(ordered) > top + 1 else len(ordered)
    rows = [
        Calls(
            op.name,
            both_names(op.name, op.raw_name),
            (number(op.control_count), number(op.test_count)),
            (us(op.control_self), us(op.test_self)),
        )
        for op in ordered[:cut]
    ]
    rest = ordered[cut:]
    if rest:
        counts = number(sum(op.control_count for op in rest)), number(sum(op.test_count for op in rest))
        times = us(sum(op.control_self for op in rest)), us(sum(op.test_self for op in rest))
        rows.append(Calls(f"{len(rest)} others", full_name(", ".join(op.name for op in rest)), counts, times))
    return rows


def _side(figure: go.Figure, rows: list[Calls], *, side: int, name: str, colour: str, unit: Unit) -> None:
    texts = [
        f"{row.full}<br>{counts(row.counts[0], row.counts[1])} calls"
        f"<br>{change(row.us[0], row.us[1])} ({signed_time(row.us[1] - row.us[0])}) per step"
        for row in rows
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


def _title(comparison: Comparison, ops: list[Op]) -> str:
    us, number = comparison.us, comparison.number
    calls = number(sum(op.control_count for op in ops)), number(sum(op.test_count for op in ops))
    times = us(sum(op.control_self for op in ops)), us(sum(op.test_self for op in ops))
    return f"Runtime calls per step: {counts(*calls)}, {change(*times)}"
