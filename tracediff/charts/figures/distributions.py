"""The periods of all used steps, run by run."""

from __future__ import annotations

from statistics import mean, median
from typing import TYPE_CHECKING

from tracediff.charts.labels import label, side_names, sides_of
from tracediff.charts.marks import hovers, step_dots
from tracediff.charts.theme import empty, faint, finish, palette
from tracediff.diff.comparison import Comparison
from tracediff.formatting import plural, signed_time, time, time_unit

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.aggregate.averages import UsedStep
    from tracediff.analysis.analysis import Analysis

MOST = 8000
"""Dots in a chart; longer runs are sampled evenly from the shortest step to the longest."""
FEWEST = 25
"""Dots per run, at least."""


def distributions(subject: Comparison | Analysis, *, theme: str = "light") -> go.Figure:
    """The periods of the used steps of every run on both sides (or of one set): a box per run, a dot per step. With
    several ranks, each step's slowest rank.
    """
    import plotly.graph_objects as go

    sides = sides_of(subject)
    runs = [(which, name, steps) for which, side in enumerate(sides) for name, steps in side.steps.items() if steps]
    if not runs:
        return empty(theme, "No used step on either side.")
    colours = palette(theme)
    unit = time_unit(step.period_ns / 1000 for _, _, steps in runs for step in steps)
    names = side_names(subject)
    share = max(MOST // len(runs), FEWEST)
    shown: set[int] = set()
    figure = go.Figure()
    for place, (which, name, steps) in enumerate(runs):
        drawn = _chosen(steps, share)
        figure.add_box(
            name=names[which],
            legendgroup=str(which),
            showlegend=which not in shown,
            x=[place] * len(drawn),
            y=[unit.scaled(step.period_ns / 1000) for step in drawn],
            width=0.55,
            **step_dots(colours, which),
            line={"color": colours.text, "width": 1.2},
            fillcolor=faint(colours.sides[which], 0.3),
            **hovers(
                f"{label(name, 80)}<br>step {step.number}, rank {step.rank}<br>{time(step.period_ns / 1000)}"
                for step in drawn
            ),
        )
        shown.add(which)
    ticks = [f"{label(name, 16)}<br>{plural(len(steps), 'step')}" for _, name, steps in runs]
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(runs))),
        ticktext=ticks,
        showgrid=False,
        range=[-0.6, len(runs) - 0.4],
        zeroline=False,
    )
    figure.update_yaxes(title_text=f"step period ({unit.name})")
    return finish(
        figure, theme, _title(subject), _subtitle(subject, any(len(steps) > share for _, _, steps in runs)), 380
    )


def _chosen(steps: list[UsedStep], most: int) -> list[UsedStep]:
    """At most ``most`` of ``steps``, evenly from the shortest to the longest."""
    if len(steps) <= most:
        return steps
    ordered = sorted(steps, key=lambda s: (s.period_ns, s.number))
    return [ordered[round(k * (len(ordered) - 1) / (most - 1))] for k in range(most)]


def _title(subject: Comparison | Analysis) -> str:
    if not isinstance(subject, Comparison):
        periods = [step.period_ns / 1000 for run in subject.side.steps.values() for step in run]
        return f"The median step takes {time(median(periods))}, the mean {time(mean(periods))}"
    verdict = subject.verdict
    medians = (
        f"The median step takes {time(verdict.median_control_us)} in the control, "
        f"{time(verdict.median_test_us)} in the test"
    )
    if verdict.ci95_us is None:
        return medians
    low, high = verdict.ci95_us
    return f"{medians}; the change is {signed_time(low)} to {signed_time(high)} (95 % interval)"


def _subtitle(subject: Comparison | Analysis, chosen: bool) -> str:
    text = "Each dot is a step, each box a run (quartiles and median)."
    if not isinstance(subject, Comparison):
        return text
    verdict = subject.verdict
    if verdict.ci95_us is None and verdict.within_runs_us is not None:
        low, high = verdict.within_runs_us
        text += (
            f" Within these two runs the change is {signed_time(low)} to {signed_time(high)} (95 %); other runs "
            f"may differ."
        )
    elif verdict.ci95_us is None:
        text += " Too few runs: significance unknown."
    return text + (" Long runs are sampled evenly." if chosen else "")
