"""The largest marks of a chart in words, for those who cannot see it: the text that the chart shows on hovering."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import TYPE_CHECKING, Any

from tracediff.charts.labels import HOVER_WIDTH
from tracediff.charts.theme import TAG

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST = 8
LONGEST = 320
"""Characters of a mark's text."""
FIELD = re.compile(r"%\{customdata(?:\[(?P<k>\d)\])?\}")


def marks_text(figure: go.Figure, most: int = MOST) -> list[str]:
    """The ``most`` largest marks of ``figure``, plain text, the largest first; marks of equal text are one."""
    marks = sorted(_marks(figure), key=lambda mark: -mark[0])
    return list(dict.fromkeys(text for size, text in marks if size))[:most]


def _marks(figure: go.Figure) -> Iterator[tuple[float, str]]:
    """(size, text) of every mark that has a hover text."""
    traces: Iterable[Any] = figure.data
    for trace in traces:
        if trace.hovertemplate is None or trace.customdata is None:
            continue
        hovers = trace.customdata if trace.type != "heatmap" else (hover for row in trace.customdata for hover in row)
        for size, hover in zip(_sizes(trace), hovers, strict=False):
            yield abs(float(size or 0)), _plain(_filled(trace.hovertemplate, hover))


def _sizes(trace: Any) -> list[float | None]:
    """What the size or the place of each mark shows."""
    if trace.type == "heatmap":
        return [size for row in trace.z for size in row]
    if trace.type == "scatter" and trace.mode == "markers":
        return [max(abs(x or 0), abs(y or 0)) for x, y in zip(trace.x, trace.y, strict=True)]
    return list(trace.x if getattr(trace, "orientation", None) == "h" else trace.y)


def _filled(template: str, hover: Any) -> str:
    """A hover template with the data of one mark."""
    return FIELD.sub(lambda field: str(hover if field["k"] is None else hover[int(field["k"])]), template)


def _plain(markup: str) -> str:
    """A hover text on one line, its middle left out where it is long; a name that fills a line goes on in the next."""
    text, is_full = "", True
    for line in markup.replace("<extra></extra>", "").split("<br>"):
        plain = unescape(TAG.sub("", line))
        text += plain if is_full else f", {plain}"
        is_full = len(plain) == HOVER_WIDTH
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
