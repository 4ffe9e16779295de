"""What charts are drawn of: arguments of plotly's traces, rows of bars with names, panels above each other; and the
largest marks in words, for those who cannot see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tracediff import bounds
from tracediff.charts.labels import HOVER_WIDTH
from tracediff.charts.theme import TAG

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tracediff.charts.theme import Palette

T = TypeVar("T")


def split(rows: list[T], most: int) -> tuple[list[T], list[T]]:
    """The first ``most`` of ``rows``, and the rest, which a chart shows as one and which is never a single row."""
    cut = most if len(rows) > most + 1 else len(rows)
    return rows[:cut], rows[cut:]


def data_array(values: Iterable[Any]) -> Any:
    """``values`` as a list: numbers, texts, None for a gap, or rows of them.

    plotly takes all of these wherever it takes data; plotly-stubs (0.1) allows numbers only, hence the type.
    """
    return list(values)


def hovers(texts: Iterable[Any]) -> dict[str, Any]:
    """Of a trace whose marks show ``texts`` on hovering, one for each (or rows of them), already escaped."""
    return {"customdata": list(texts), "hovertemplate": "%{customdata}<extra></extra>"}


def step_dots(colours: Palette, which: int) -> dict[str, Any]:
    """Of a box of the control (0) or the test (1) with a dot for each step."""
    return {
        "boxpoints": "all",
        "jitter": 0.5,
        "pointpos": 0,
        "marker": {"color": colours.sides[which], "size": 6, "line": {"color": colours.text, "width": 0.5}},
    }


def once_in_legend(figure: go.Figure, group: str) -> dict[str, Any]:
    """Of a trace of ``group``, of which the legend has the first in ``figure``."""
    traces: Iterable[Any] = figure.data
    return {"legendgroup": group, "showlegend": all(trace.legendgroup != group for trace in traces)}


def named_ticks(names: Sequence[str], every: int = 1) -> dict[str, Any]:
    """Of an axis whose places 0, 1, … have ``names``, of which each ``every``-th is shown."""
    return {"tickmode": "array", "tickvals": list(range(0, len(names), every)), "ticktext": list(names[::every])}


def name_rows(figure: go.Figure | Panel, names: Sequence[str]) -> None:
    """Name the rows of horizontal bars, the first at the top."""
    figure.update_yaxes(**named_ticks(names), range=[len(names) - 0.4, -0.6], showgrid=False, zeroline=False)


class Panel(NamedTuple):
    """One of the panels of ``figure`` above each other, counted from 1: has the figure's methods that add marks to it
    and update its axes.
    """

    figure: go.Figure
    row: int

    def __getattr__(self, method: str) -> Any:
        return partial(getattr(self.figure, method), row=self.row, col=1)


def panels(titles: Sequence[str], spacing: float, heights: Sequence[int] | None = None) -> list[Panel]:
    """The panels of a new figure above each other, with one x axis.

    Args:
        spacing: between two, as a part of the figure's height. heights: relative to each other.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(
        len(titles),
        1,
        shared_xaxes=True,
        vertical_spacing=spacing,
        row_heights=None if heights is None else [float(height) for height in heights],
        subplot_titles=list(titles),
    )
    figure.update_annotations(font={"size": 13}, x=0, xanchor="left")
    return [Panel(figure, row) for row in range(1, len(titles) + 1)]


def marks_text(figure: go.Figure) -> list[str]:
    """The MARK_LINES largest marks of ``figure``, plain text, the largest first; marks of equal text are one."""
    marks = sorted(_marks(figure), key=lambda mark: -mark[0])
    return list(dict.fromkeys(text for size, text in marks if size))[: bounds.MARK_LINES]


def _marks(figure: go.Figure) -> Iterator[tuple[float, str]]:
    """(size, text) of every mark that has a hover text of `hovers`."""
    traces: Iterable[Any] = figure.data
    for trace in traces:
        if trace.customdata is None:
            continue
        hovers = trace.customdata if trace.type != "heatmap" else (hover for row in trace.customdata for hover in row)
        for size, hover in zip(_sizes(trace), hovers, strict=False):
            yield abs(float(size or 0)), _plain(str(hover))


def _sizes(trace: Any) -> list[float | None]:
    """What the size or the place of each mark shows."""
    if trace.type == "heatmap":
        return [size for row in trace.z for size in row]
    if trace.type == "scatter" and trace.mode == "markers":
        return [max(abs(x or 0), abs(y or 0)) for x, y in zip(trace.x, trace.y, strict=True)]
    return list(trace.x if getattr(trace, "orientation", None) == "h" else trace.y)


def _plain(markup: str) -> str:
    """A hover text on one line, its middle left out where it is long; a name that fills a line goes on in the next."""
    text, is_full = "", True
    for line in markup.split("<br>"):
        plain = unescape(TAG.sub("", line))
        text += plain if is_full else f", {plain}"
        is_full = len(plain) == HOVER_WIDTH
    return (
        text if len(text) <= bounds.MARK_TEXT else f"{text[: bounds.MARK_TEXT // 2]} … {text[-bounds.MARK_TEXT // 2 :]}"
    )
