"""Where the time of each rank went."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracediff.charts.labels import in_which, label, side_names, sides_of
from tracediff.charts.marks import data_array, hovers
from tracediff.charts.rows import panels
from tracediff.charts.theme import empty, finish, palette
from tracediff.formatting import plural, time, time_unit
from tracediff.profile.step_states import state_label

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.aggregate.side import Side
    from tracediff.analysis.analysis import Analysis
    from tracediff.diff.comparison import Comparison
    from tracediff.formatting import Unit

COMMUNICATION = "communication kernels"
MOST = 256
"""Ranks drawn per side; if there are more, those that were slowest most often or communicate longest."""

Cells = dict[int, dict[str, float]]
"""Rank → column → µs per step."""


def ranks(subject: Comparison | Analysis, *, theme: str = "light") -> go.Figure:
    """Heat maps of rank × state, control above test: µs per step of each rank, and of its communication kernels."""
    sides = sides_of(subject)
    if max(len(side.ranks) for side in sides) < 2:
        return empty(theme, "Only one rank: there are no ranks to compare.")
    cells = [_cells(side) for side in sides]
    columns = _columns(cells)
    if not columns:
        return empty(theme, "No step of any rank has a state or a communication kernel.")
    unit = time_unit(v for side in cells for row in side.values() for v in row.values())
    rows = [max(len(side), 1) for side in cells]
    figure = panels(side_names(subject), min(0.15, 1.2 / (1 + min(sum(rows), 60))), rows)
    gpu = any(side.has_gpu for side in sides)
    names = [column if column == COMMUNICATION else state_label(column, gpu) for column in columns]
    for k, side in enumerate(sides):
        _map(figure, k + 1, side=side, cells=cells[k], columns=columns, names=names, unit=unit)
    colours = palette(theme)
    colorbar = {"ticksuffix": f" {unit.name}", "thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11}}
    figure.update_layout(coloraxis={"colorscale": colours.amount, "cmin": 0, "colorbar": colorbar})
    figure.update_xaxes(
        tickmode="array", tickvals=list(range(len(names))), ticktext=[label(n) for n in names], tickangle=-40
    )
    figure.update_xaxes(showgrid=False, zeroline=False)
    subtitle = (
        "Time per state of each rank. The step time is that of the slowest rank; the labels count the steps in "
        "which a rank was the slowest."
    )
    return finish(figure, theme, _title(sides), subtitle, 240 + 26 * min(sum(rows), 60))


def _cells(side: Side) -> Cells:
    """Mean µs of each state per step of each rank, and of communication kernels."""
    cells: Cells = {rank: dict(states) for rank, states in side.rank_states.items()}
    for rank, us in side.communication_us.items():
        cells.setdefault(rank, {})[COMMUNICATION] = us
    if len(cells) > MOST:
        slowest = _slowest(side)
        first = sorted(cells, key=lambda r: (-slowest[r], -cells[r].get(COMMUNICATION, 0.0), r))[:MOST]
        cells = {rank: cells[rank] for rank in sorted(first)}
    return cells


def _slowest(side: Side) -> Counter[int]:
    """Rank → the number of used steps in which it was the slowest."""
    return Counter(step.rank for steps in side.steps.values() for step in steps)


def _columns(cells: list[Cells]) -> list[str]:
    """The states that take any time, in their order; communication kernels last."""
    names = dict.fromkeys(name for side in cells for row in side.values() for name, us in row.items() if us)
    return sorted(names, key=lambda n: n == COMMUNICATION)


def _map(
    figure: go.Figure, row: int, *, side: Side, cells: Cells, columns: list[str], names: list[str], unit: Unit
) -> None:
    slowest = _slowest(side)
    order = list(cells)
    ticks = [
        f"rank {rank}" + (f", slowest of {plural(slowest[rank], 'step')}" if slowest[rank] else "") for rank in order
    ]
    figure.add_heatmap(
        z=data_array([unit.scaled(cells[r][c]) if c in cells[r] else None for c in columns] for r in order),
        x=list(range(len(columns))),
        y=list(range(len(order))),
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverongaps=False,
        **hovers(
            [
                f"<b>{ticks[i]}</b><br>{label(name, 80)}<br>{time(cells[r].get(c, 0.0))} per step"
                for c, name in zip(columns, names, strict=True)
            ]
            for i, r in enumerate(order)
        ),
        row=row,
        col=1,
    )
    every = max(1, len(order) // 32)
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(0, len(order), every)),
        ticktext=ticks[::every],
        range=[len(order) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        row=row,
        col=1,
    )


def _title(sides: tuple[Side, ...]) -> str:
    parts = []
    for which, side in enumerate(sides):
        communication = list(side.communication_us.values())
        if len(communication) > 1:
            parts.append(
                f"{time(min(communication))} to {time(max(communication))} per step{in_which(which, len(sides))}"
            )
    return f"Ranks spend {', '.join(parts)} in communication kernels" if parts else "Where the time of each rank goes"
