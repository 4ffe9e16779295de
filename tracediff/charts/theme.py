"""One look for all charts, light and dark. A colour has one meaning, and those that meet in a chart differ for
colour-blind eyes too (after Okabe and Ito).
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, ClassVar

from tracediff.charts.labels import SUBTITLE_WIDTH, TITLE_WIDTH, choice, lines
from tracediff.structs import FrozenStruct

if TYPE_CHECKING:
    import plotly.graph_objects as go

NO_BUTTONS = ("sendChartToCloud", "sendDataToCloud", "editInChartStudio", "select2d", "lasso2d")
"""Buttons removed from every chart: those that send it to plotly's servers, and unused selections."""
PANEL_TITLE = 14
"""Pixels that titles of panels need below the chart's own."""
TAG = re.compile(r"<[^<>]*>")
"""Markup that charts add; text from traces is escaped."""
BELOW_AXIS = 48
"""Pixels of an axis' labels and title; the legend is below them."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Palette(FrozenStruct, kw_only=True):
    """Colours by meaning.

    Attributes:
        control, test, faster, slower: of the two sides and the two directions of change.
        neutral: neither faster nor slower: a change of counts, the equality line. quiet: untested.
        text, muted, grid, paper: of the page. middle: no change, between faster and slower.
        parts: parts of a whole, without a meaning beyond their chart; the same in light and dark.
    """

    parts: ClassVar = (
        "#56B4E9",
        "#E69F00",
        "#009E73",
        "#F0E442",
        "#7A6FC0",
        "#B98B5E",
        "#8FD3C8",
        "#C5B26B",
        "#9AA83A",
    )
    control: str
    test: str
    faster: str
    slower: str
    neutral: str
    quiet: str
    text: str
    muted: str
    grid: str
    paper: str
    middle: str

    @property
    def sides(self) -> tuple[str, str]:
        """Colours of control and test."""
        return self.control, self.test

    @property
    def kinds(self) -> dict[str, str]:
        """Colours of the kinds of calls in a call tree of one set."""
        sky, amber, green, yellow, *_ = self.parts
        return {"phase": self.control, "annotation": yellow, "module": sky, "op": green, "kernel": amber}

    def change(self, delta: float) -> str:
        """The colour of a change of time."""
        return self.slower if delta > 0 else self.faster if delta < 0 else self.neutral


PALETTES = {
    "light": Palette(
        control="#B3B9C1",
        test="#8F3F77",
        faster="#0072B2",
        slower="#BD5300",
        neutral="#4D5763",
        quiet="#9AA1A9",
        text="#1F2530",
        muted="#5A6270",
        grid="#E3E6EA",
        paper="#FFFFFF",
        middle="#E6E9ED",
    ),
    "dark": Palette(
        control="#737C88",
        test="#E9B3D6",
        faster="#58AEE8",
        slower="#F07C35",
        neutral="#C3CAD3",
        quiet="#8C949E",
        text="#E8EBEF",
        muted="#A9B1BC",
        grid="#363D47",
        paper="#171B21",
        middle="#343A43",
    ),
}


def readable(background: str) -> str:
    """Black or white, whichever contrasts with ``background`` (#RRGGBB): at least 4.5 to 1."""
    channels = (channel / 255 for channel in _rgb(background))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue  # as WCAG defines it, 0 for black to 1 for white
    return "#000000" if luminance > 0.179 else "#FFFFFF"


def faint(colour: str, opacity: float) -> str:
    """``colour`` (#RRGGBB) with ``opacity`` (0 to 1), as CSS."""
    return f"rgba({','.join(map(str, _rgb(colour)))},{opacity})"


def _rgb(colour: str) -> bytes:
    return bytes.fromhex(colour[1:])


def palette(theme: str) -> Palette:
    """The colours of ``theme``.

    Raises:
        TracediffError: it is neither light nor dark.
    """
    return PALETTES[choice("theme", theme, PALETTES)]


def template(theme: str) -> go.layout.Template:
    """The plotly template of ``theme``; it is given to each figure and registered nowhere."""
    import plotly.graph_objects as go

    colours = palette(theme)
    axis = {
        "gridcolor": colours.grid,
        "linecolor": colours.grid,
        "zerolinecolor": colours.muted,
        "zerolinewidth": 1,
        "ticks": "",
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 12, "color": colours.muted}},
        "tickfont": {"size": 11},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": colours.text},
            "title": {
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"l": 12},
            },
            "paper_bgcolor": colours.paper,
            "plot_bgcolor": colours.paper,
            "colorway": list(colours.parts),
            "margin": {"l": 12, "r": 16, "t": 96, "b": 12, "autoexpand": True},
            "xaxis": axis,
            "yaxis": axis,
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "yanchor": "top",
                "font": {"size": 12},
                "traceorder": "normal",
            },
            "hoverlabel": {
                "bgcolor": colours.paper,
                "bordercolor": colours.muted,
                "font": {"color": colours.text, "family": FONT, "size": 12},
                "align": "left",
            },
            "bargap": 0.25,
            "bargroupgap": 0.05,
            "separators": ".,",
            "modebar": {"remove": list(NO_BUTTONS)},
            "uniformtext": {"mode": "hide", "minsize": 10},
        }
    )


def finish(figure: go.Figure, theme: str, title: str, subtitle: str = "", height: int = 420) -> go.Figure:
    """Give ``figure`` its look, title and height in pixels.

    Args:
        title, subtitle: plain text, made safe here.
    """
    colours = palette(theme)
    title_lines, subtitle_lines = lines(title, TITLE_WIDTH), lines(subtitle, SUBTITLE_WIDTH)
    text = f"<b>{title_lines}</b>" + (
        f'<br><span style="font-size:12px;color:{colours.muted}">{subtitle_lines}</span>' if subtitle_lines else ""
    )
    top = 28 + 19 * (1 + title_lines.count("<br>")) + (17 * (1 + subtitle_lines.count("<br>")) if subtitle_lines else 0)
    top += PANEL_TITLE if figure.layout.annotations else 0
    in_legend = [t for t in figure.data if t["type"] in ("bar", "scatter", "box") and t["showlegend"] is not False]
    size = height + top + (40 if len(in_legend) > 1 else 0)
    figure.update_layout(
        template=template(theme),
        title={"text": text, "font": {"size": 14}, "y": 1 - 22 / size},
        height=size,
        margin={"t": top},
        legend={"y": -BELOW_AXIS / (height - BELOW_AXIS)},
    )
    return figure


def empty(theme: str, sentence: str) -> go.Figure:
    """A figure without data that says why it is empty.

    Args:
        sentence: plain text, made safe here.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_annotation(
        text=lines(sentence, TITLE_WIDTH), x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 14}
    )
    figure.update_layout(template=template(theme), height=180, margin={"t": 12})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def caption(figure: go.Figure) -> tuple[str, str]:
    """(title, subtitle) of a figure of `finish` as plain text; of one of `empty` what is missing."""
    text = str(figure.layout.title.text or figure.layout.annotations[0].text)
    head, _, subtitle = text.partition("<br><span")
    return _plain(head), _plain(f"<span{subtitle}") if subtitle else ""


def height_of(figure: go.Figure) -> int:
    """Pixels from top to bottom of a figure of `finish` or `empty`."""
    height = figure.layout.height
    assert height is not None
    return int(height)


def _plain(markup: str) -> str:
    return unescape(TAG.sub("", markup.replace("<br>", " ")))
