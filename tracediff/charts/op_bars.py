"""Bars of operations: control, test and difference, as the figures of durations and of counts draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracediff.charts.labels import both_names, choice, label, not_compared, side_names
from tracediff.charts.marks import hovers
from tracediff.charts.rows import name_rows
from tracediff.charts.theme import empty, finish, palette
from tracediff.diff.ops import GPU_WORK, HOST_WORK
from tracediff.formatting import change, counts, plural, signed_count, signed_time

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.charts.theme import Palette
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.ops import Op
    from tracediff.formatting import Unit

TOP = 20
MOST = 400
"""Most operations in a chart, for legibility and file size."""


@dataclass(frozen=True)
class Bar:
    """One operation; control and test in events or µs per step."""

    op: Op
    control: float
    test: float

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


def draw_op_bars(
    comparison: Comparison, bars: list[Bar], what: str, unit: Unit | None, *, top: int, sort: str, theme: str
) -> go.Figure:
    """Three bars per operation on one axis: control, test and difference.

    Args:
        what: the bars measure, in words. unit: of times; None for counts.
    """
    import plotly.graph_objects as go

    key = SORTS[choice("sort", sort, SORTS)]
    drawn = sorted(bars, key=lambda b: (*key(b), b.op.raw_name))[: max(min(top, MOST), 0)]
    drawn = [b for b in drawn if b.delta or sort not in ("change", "increase", "decrease")]
    if not drawn:
        sentence = f"{what}: nothing changed." if bars else "There are no operations on this device."
        return empty(theme, not_compared(comparison) or sentence)
    figure = go.Figure()
    for group, name, colour, values in _groups(comparison, drawn, palette(theme), is_time=unit is not None):
        if values:
            figure.add_bar(
                name=name,
                orientation="h",
                offsetgroup=group,
                y=list(values),
                x=[unit.scaled(value) if unit else value for value in values.values()],
                marker_color=colour,
                **hovers(_hover(comparison, drawn[row].op) for row in values),
            )
    name_rows(figure, [label(b.op.name) for b in drawn])
    axis = f"time per step ({unit.name})" if unit else "count per step"
    figure.update_xaxes(title_text=axis, rangemode="tozero")
    figure.update_layout(barmode="group")
    return finish(
        figure, theme, _title(drawn, what, unit), _subtitle(len(drawn), len(bars), sort), 80 + 36 * len(drawn)
    )


def _groups(
    comparison: Comparison, drawn: list[Bar], colours: Palette, is_time: bool
) -> list[tuple[str, str, str, dict[int, float]]]:
    """(group, legend entry, colour, row → value) of the bars of each colour."""
    control, test = side_names(comparison)
    sides = [
        ("control", control, colours.control, {row: b.control for row, b in enumerate(drawn)}),
        ("test", test, colours.test, {row: b.test for row, b in enumerate(drawn)}),
    ]
    deltas = {row: b.delta for row, b in enumerate(drawn)}
    if not is_time:
        return [*sides, ("difference", "difference", colours.neutral, deltas)]
    slower, faster = ({row: d for row, d in deltas.items() if d * sign > 0} for sign in (1, -1))
    return [
        *sides,
        ("difference", "difference: slower", colours.slower, slower),
        ("difference", "difference: faster", colours.faster, faster),
    ]


def _hover(comparison: Comparison, op: Op) -> str:
    us, number = comparison.us, comparison.number
    significance = "" if op.time_change == "untested" else f"<br>significance: {op.time_change}"
    return (
        f"{both_names(op.name, op.raw_name)}<br>{label(op.family)}"
        f"<br>count {counts(number(op.control_count), number(op.test_count))}"
        f"<br>self time {change(us(op.control_self), us(op.test_self))} "
        f"({signed_time(us(op.delta))}){significance}"
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
