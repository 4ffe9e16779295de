"""Bars of operations: control, test and difference, as the figures of durations and of counts draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.charts.data_array import data_array
from tracediff.charts.labels import both_names, choice, label, not_compared, side_names
from tracediff.charts.theme import empty, finish, palette
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.formatting import change, counts, plural, signed_count, signed_time

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.diff.comparison import Comparison
    from tracediff.diff.ops import Op
    from tracediff.formatting import Unit

TOP = 20
MOST = 400
"""Most operations in a chart, for legibility and file size."""


@dataclass(frozen=True)
class Bar:
    """One operation; control and test in events or µs per step, ``hover`` already escaped."""

    op: Op
    control: float
    test: float
    hover: str

    @property
    def delta(self) -> float:
        """test − control."""
        return self.test - self.control


SORTS: dict[str, Callable[[Bar], tuple[float | str, ...]]] = {
    "change": lambda b: (-abs(b.delta),),
    "increase": lambda b: (-b.delta,),
    "decrease": lambda b: (b.delta,),
    "control": lambda b: (-b.control,),
    "test": lambda b: (-b.test,),
    "name": lambda b: (b.op.name,),
}
"""Orders of the bars."""


def which_device(comparison: Comparison, device: str | None) -> str:
    """``device``, by default gpu where there is any work on it.

    Raises:
        TracediffError: neither gpu nor cpu.
    """
    if device is not None:
        return choice("device", device, ("gpu", "cpu"))
    return "gpu" if any(op.category in GPU_WORK for op in comparison.ops) else "cpu"


def ops_of(comparison: Comparison, device: str) -> list[Op]:
    """The operations on one device; GPU work, or operators and runtime calls."""
    work = GPU_WORK if device == "gpu" else HOST_WORK
    return [op for op in comparison.ops if op.category in work]


def op_hover(comparison: Comparison, op: Op) -> str:
    """The hover text of a bar of ``op``, escaped."""
    us, number = comparison.us, comparison.number
    significance = "" if op.time_change == "untested" else f"<br>significance: {op.time_change}"
    return (
        f"{both_names(op.name, op.raw_name)}<br>{label(op.family)}"
        f"<br>count {counts(number(op.control_count), number(op.test_count))}"
        f"<br>self time {change(us(op.control_self), us(op.test_self))} "
        f"({signed_time(us(op.delta))}){significance}"
    )


def draw_op_bars(
    comparison: Comparison,
    bars: list[Bar],
    *,
    order: tuple[int, str, str],
    words: tuple[str, str],
    unit: Unit | None,
    colours: list[str],
) -> go.Figure:
    """Three bars per operation on one axis: control, test and difference."""
    import plotly.graph_objects as go

    top, sort, theme = order
    key = SORTS[choice("sort", sort, SORTS)]
    drawn = sorted(bars, key=lambda b: (*key(b), b.op.raw_name))[: max(min(top, MOST), 0)]
    drawn = [b for b in drawn if b.delta or sort not in ("change", "increase", "decrease")]
    if not drawn:
        refused = not_compared(comparison)
        return empty(
            theme,
            refused or (f"{words[0]}: nothing {words[1]}." if bars else "There are no operations on this device."),
        )
    theme_colours = palette(theme)
    names = side_names(comparison)
    figure = go.Figure()
    rows = list(enumerate(drawn))
    _bars(
        figure,
        name=names[0],
        colour=theme_colours.control,
        group="control",
        rows=[(k, b, b.control) for k, b in rows],
        unit=unit,
    )
    _bars(
        figure,
        name=names[1],
        colour=theme_colours.test,
        group="test",
        rows=[(k, b, b.test) for k, b in rows],
        unit=unit,
    )
    if unit:
        _bars(
            figure,
            name="difference: slower",
            colour=colours[0],
            group="difference",
            rows=[(k, b, b.delta) for k, b in rows if b.delta > 0],
            unit=unit,
        )
        _bars(
            figure,
            name="difference: faster",
            colour=colours[1],
            group="difference",
            rows=[(k, b, b.delta) for k, b in rows if b.delta < 0],
            unit=unit,
        )
    else:
        _bars(
            figure,
            name="difference",
            colour=colours[0],
            group="difference",
            rows=[(k, b, b.delta) for k, b in rows],
            unit=unit,
        )
    ticks = [label(b.op.name) for b in drawn]
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(drawn))),
        ticktext=ticks,
        range=[len(drawn) - 0.4, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(
        title_text=f"{'time' if unit else 'count'} per step{f' ({unit.name})' if unit else ''}", rangemode="tozero"
    )
    figure.update_layout(barmode="group")
    return finish(
        figure, theme, _title(drawn, words[0], unit), _subtitle(len(drawn), len(bars), sort), 80 + 36 * len(drawn)
    )


def _bars(
    figure: go.Figure, *, name: str, colour: str, group: str, rows: list[tuple[int, Bar, float]], unit: Unit | None
) -> None:
    """One colour of bars; ``rows`` are (place, bar, value)."""
    if not rows:
        return
    figure.add_bar(
        name=name,
        orientation="h",
        offsetgroup=group,
        y=[k for k, _, _ in rows],
        x=[unit.scaled(v) if unit else v for _, _, v in rows],
        marker_color=colour,
        customdata=data_array(b.hover for _, b, _ in rows),
        hovertemplate="%{customdata}<extra></extra>",
    )


def _title(drawn: list[Bar], what: str, unit: Unit | None) -> str:
    largest = max(drawn, key=lambda b: abs(b.delta))
    delta = signed_time(largest.delta) if unit else signed_count(largest.delta)
    name = largest.op.name if len(largest.op.name) <= 40 else f"{largest.op.name[:39]}…"
    return f"{what[:1].upper()}{what[1:]} per step: {name} changed most ({delta})"


def _subtitle(shown: int, total: int, sort: str) -> str:
    orders = {
        "change": "largest change first",
        "increase": "largest increase first",
        "decrease": "largest decrease first",
        "name": "by name",
    }
    which = plural(total, "operation") if shown == total else f"{shown:,} of {plural(total, 'operation')}"
    return f"{which}, {orders.get(sort, f'largest in {sort} first')}."
