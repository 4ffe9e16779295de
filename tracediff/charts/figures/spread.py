"""How steps and ranks differ: the periods of all used steps, run by run, and where the time of each rank went."""

from collections import Counter
from statistics import mean, median

import plotly.graph_objects as go

from tracediff import bounds
from tracediff.aggregate.averages import UsedStep
from tracediff.aggregate.summary import Side
from tracediff.charts.labels import in_set, label, side_names
from tracediff.charts.marks import Panel, data_array, hovers, named_ticks, once_in_legend, panels, step_dots
from tracediff.charts.theme import empty, faint, finish, palette
from tracediff.diff.comparison import Comparison, Scaled
from tracediff.formatting import Unit, plural, signed_time, time, time_unit
from tracediff.profile.events.step_states import state_label


def distributions(subject: Scaled, *, theme: str = "light") -> go.Figure:
    """The periods of the used steps of every run on both sides (or of one set): a box per run, a dot per step. With
    several ranks, each step's slowest rank.
    """
    sides = subject.sides
    runs = [(which, name, steps) for which, side in enumerate(sides) for name, steps in side.steps.items() if steps]
    if not runs:
        return empty(theme, "No used step on either side.")
    colours = palette(theme)
    unit = time_unit(step.period_ns / 1000 for _, _, steps in runs for step in steps)
    names = side_names(subject)
    share = max(bounds.DOTS // len(runs), bounds.DOTS_OF_RUN)
    figure = go.Figure()
    for place, (which, name, steps) in enumerate(runs):
        sample = _sampled(steps, share)
        figure.add_box(
            name=names[which],
            **once_in_legend(figure, str(which)),
            x=[place] * len(sample),
            y=[unit.scaled(step.period_ns / 1000) for step in sample],
            width=0.55,
            **step_dots(colours, which),
            line={"color": colours.text, "width": 1.2},
            fillcolor=faint(colours.sides[which], 0.3),
            **hovers(
                f"{label(name, 80)}<br>step {step.number}, rank {step.rank}<br>{time(step.period_ns / 1000)}"
                for step in sample
            ),
        )
    ticks = [f"{label(name, 16)}<br>{plural(len(steps), 'step')}" for _, name, steps in runs]
    figure.update_xaxes(
        **named_ticks(ticks),
        showgrid=False,
        range=[-0.6, len(runs) - 0.4],
        zeroline=False,
    )
    figure.update_yaxes(title_text=f"step period ({unit.name})")
    return finish(
        figure, theme, _title(subject), _subtitle(subject, any(len(steps) > share for _, _, steps in runs)), 300
    )


def _sampled(steps: list[UsedStep], most: int) -> list[UsedStep]:
    """At most ``most`` of ``steps``, evenly from the shortest to the longest."""
    if len(steps) <= most:
        return steps
    ordered = sorted(steps, key=lambda s: (s.period_ns, s.number))
    return [ordered[round(k * (len(ordered) - 1) / (most - 1))] for k in range(most)]


def _title(subject: Scaled) -> str:
    if not isinstance(subject, Comparison):
        periods = [step.period_ns / 1000 for run in subject.sides[0].steps.values() for step in run]
        return f"The median step takes {time(median(periods))}, the mean {time(mean(periods))}"
    verdict, names = subject.verdict, subject.labels
    what = "whole file" if subject.is_whole_file else "median step"
    control_us, test_us = verdict.medians
    medians = f"The {what} takes {time(control_us, test_us)} in {names[0]}, {time(test_us, control_us)} in {names[1]}"
    if verdict.ci95_us is None:
        return medians
    low, high = (signed_time(end, control_us, test_us) for end in verdict.ci95_us)
    return f"{medians}; the change is {low} to {high} (95 % interval)"


def _subtitle(subject: Scaled, is_sampled: bool) -> str:
    text = f"Each dot is a {subject.each}, each box a run (quartiles and median)."
    if not isinstance(subject, Comparison):
        return text
    verdict = subject.verdict
    if verdict.ci95_us is None and verdict.within_runs_us is not None:
        low, high = (signed_time(end, *verdict.medians) for end in verdict.within_runs_us)
        text += f" Within these two runs the change is {low} to {high} (95 %); other runs may differ."
    elif verdict.ci95_us is None:
        text += " Too few runs: significance unknown."
    return text + (" Long runs are sampled evenly." if is_sampled else "")


COMMUNICATION = "all communication"

Cells = dict[int, dict[str, float]]
"""Rank → column → µs per step."""


def ranks(subject: Scaled, *, theme: str = "light") -> go.Figure:
    """Heat maps of rank × state, control above test: µs per step of each rank, and all its communication."""
    sides = subject.sides
    if max(len(side.ranks) for side in sides) < 2:
        return empty(theme, _one_rank(subject))
    cells = [_cells(side) for side in sides]
    gpu = subject.has_gpu
    unit = time_unit(v for side in cells for row in side.values() for v in row.values())
    names = {c: c if c == COMMUNICATION else state_label(c, gpu) for c in _columns(cells, unit)}
    if not names:
        return empty(theme, "No step of any rank has a state or a communication kernel.")
    rows = [max(len(side), 1) for side in cells]
    maps = panels(side_names(subject), min(0.15, 1.2 / (1 + min(sum(rows), 60))), rows)
    for panel, side, side_cells in zip(maps, sides, cells, strict=True):
        _map(panel, side, side_cells, names, unit)
    figure = panel.figure
    colours = palette(theme)
    colorbar = {"ticksuffix": f" {unit.name}", "thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11}}
    scale = [[0.0, colours.grid], [1.0, colours.neutral]]
    figure.update_layout(coloraxis={"colorscale": scale, "cmin": 0, "colorbar": colorbar})
    figure.update_xaxes(**named_ticks(list(map(label, names.values()))), tickangle=-40)
    figure.update_xaxes(showgrid=False, zeroline=False)
    subtitle = (
        f"Mean {unit.name} per step: the states of a rank add up to its step; all communication overlaps them. A rank "
        "sets the step time if it is the slowest, or the one that the others wait for."
    )
    return finish(figure, theme, _ranks_title(sides), subtitle, 240 + 26 * min(sum(rows), 60))


def _cells(side: Side) -> Cells:
    """Mean µs of each state per step of each rank, and of all communication."""
    cells: Cells = {rank: dict(states) for rank, states in side.rank_states.items()}
    for rank, us in side.communication_us.items():
        cells.setdefault(rank, {})[COMMUNICATION] = us
    if len(cells) > bounds.RANK_BARS:
        timed = _steps_timed(side)
        first = sorted(cells, key=lambda r: (-timed[r], -cells[r].get(COMMUNICATION, 0.0), r))[: bounds.RANK_BARS]
        cells = {rank: cells[rank] for rank in sorted(first)}
    return cells


def _one_rank(subject: Scaled) -> str:
    """Why no ranks are shown, and which ranks a side has that the other lacks."""
    reasons = subject.comparability.reasons if isinstance(subject, Comparison) else ()
    recorded = next((reason for reason in reasons if reason.code == "ranks"), None)
    if recorded is None:
        return "No set has several ranks to compare."
    test, _, common = recorded.test.partition(";")
    which = "Only one rank is on both sides" if common else "One rank is compared with another"
    return f"{which} (recorded: {recorded.control} → {test})."


def _steps_timed(side: Side) -> Counter[int]:
    """Rank → the number of used steps whose time is its own: see `averages.used_steps`."""
    return Counter(step.rank for steps in side.steps.values() for step in steps)


def _columns(cells: list[Cells], unit: Unit) -> list[str]:
    """The states that take any time as it is shown, in their order; all communication last."""
    rows = (row for side in cells for row in side.values())
    names = dict.fromkeys(name for row in rows for name, us in row.items() if unit.rounded(us))
    return sorted(names, key=lambda n: n == COMMUNICATION)


def _map(panel: Panel, side: Side, cells: Cells, names: dict[str, str], unit: Unit) -> None:
    """The ranks of one side; ``names`` are those of the columns."""
    timed = _steps_timed(side)
    ticks = [f"rank {rank}" + (f", sets {plural(timed[rank], 'step')}" if timed[rank] else "") for rank in cells]
    panel.add_heatmap(
        z=data_array([unit.scaled(us[c]) if c in us else None for c in names] for us in cells.values()),
        text=data_array([unit.plain(us[c]) if c in us else "" for c in names] for us in cells.values()),
        texttemplate="%{text}",
        x=list(range(len(names))),
        y=list(range(len(cells))),
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverongaps=False,
        **hovers(
            [f"<b>{tick}</b><br>{label(name, 80)}<br>{time(us.get(c, 0.0))} per step" for c, name in names.items()]
            for tick, us in zip(ticks, cells.values(), strict=True)
        ),
    )
    panel.update_yaxes(
        **named_ticks(ticks, max(1, len(cells) // 32)),
        range=[len(cells) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )


def _ranks_title(sides: tuple[Side, ...]) -> str:
    parts = []
    for which, side in enumerate(sides):
        communication = list(side.communication_us.values())
        if len(communication) > 1:
            low, high = min(communication), max(communication)
            parts.append(f"{time(low, high)} to {time(high)} per step{in_set(which, sides)}")
    return f"Ranks spend {', '.join(parts)} in communication" if parts else "Where the time of each rank goes"
