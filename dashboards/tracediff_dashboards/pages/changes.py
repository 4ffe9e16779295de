"""Every operator, kernel, module, family and group in a table; what is chosen there is told beside it."""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash_ag_grid import AgGrid

from tracediff.formatting import Unit, time_unit
from tracediff_dashboards import components
from tracediff_dashboards.columns import COLUMNS, HEADS, PINNED, TIMES, usual
from tracediff_dashboards.details import details
from tracediff_dashboards.filters import View
from tracediff_dashboards.page_context import Shown
from tracediff_dashboards.rows import MOST, TITLES, Line, lines

WIDTHS = {
    "name": 230,
    "module": 220,
    "call": 220,
    "level": 105,
    "family": 105,
    "phase": 100,
    "category": 110,
    "word": 95,
}

TOLD = {
    "word": "Whether the self time changed, tested over runs; empty where that needs more: three runs a side, and "
    "time enough",
    "level": "By what control and test were matched",
    "delta_us": "test − control; sorted by size",
}
"""Column → more on its heading."""


def page(shown: Shown) -> list[Any]:
    """The tabs, the grid of the chosen one, and what is chosen in it."""
    tab = shown.view.tab
    listed = lines(shown.comparison, tab)
    tabs = dcc.RadioItems(
        id="tab",
        options=[{"label": title, "value": key} for key, title in TITLES.items()],
        value=tab,
        inline=True,
        className="tabs",
    )
    head = [html.H1("Changes"), html.Div(tabs, role="group", **components.attributes(aria_label="What is listed"))]
    if not listed:
        return [*head, _empty(shown), html.Div(AgGrid(id="grid", rowData=[], columnDefs=[]), hidden=True)]
    chosen = next((one for one in listed if one.key == shown.view.row), None)
    told = html.Aside(
        _details(shown, chosen),
        id="details",
        className="details",
        tabIndex=-1,
        **components.attributes(aria_label="The chosen row", aria_live="polite"),
    )
    return [
        *head,
        _tools(shown.view, listed),
        html.Div([html.Div(_grid(shown, listed), className="gridbox"), told], className="beside"),
    ]


def _details(shown: Shown, chosen: Line | None) -> list[Any]:
    if chosen is not None:
        return details(shown, chosen)
    gone = "The row that the address names is not among these: a filter leaves it out." if shown.view.row else ""
    return [
        html.P(
            gone or "Choose a row (click, or Space) to see its partners, its steps, and where it is called.",
            className="missing",
        )
    ]


def _empty(shown: Shown) -> Any:
    if shown.whole.was_refused:
        return html.P(
            "The sides were not compared; the overview says why and lets you compare them all the same.",
            className="missing",
        )
    if shown.is_part:
        return html.P("Nothing of this kind is left: take back a filter above.", className="missing")
    why = {
        "kernels": "The traces hold no GPU work.",
        "modules": "The traces tell nothing of modules: record them with with_modules=True or with_stack=True.",
    }
    return html.P(why.get(shown.view.tab, "The traces hold nothing of this kind."), className="missing")


def _tools(view: View, listed: list[Line]) -> Any:
    options = [{"label": HEADS[key], "value": key} for key in COLUMNS[view.tab]]
    shown, pinned = list(view.table.shown or usual(view.tab)), list(view.table.pinned or PINNED)
    times = "self times" if view.tab in ("ops", "scopes") else "times"
    more = f", the {MOST:,} largest changes" if len(listed) == MOST else ""
    said = f"{len(listed):,} rows{more}; counts and {times} per step"
    return html.Div(
        [
            html.Span(said, id="rows", title=said, className="facts"),
            _chosen("columns", options, shown),
            _chosen("pinned", options, pinned),
            html.Button("Download CSV", id="csv", type="button"),
        ],
        className="tools",
    )


def _chosen(key: str, options: list[dict[str, str]], value: list[str]) -> Any:
    choice = dcc.Dropdown(id=key, options=options, value=value, multi=True, searchable=False, clearable=False)
    return html.Div([html.Label(key, htmlFor=key), choice])


def _unit(shown: Shown, listed: list[Line]) -> Unit:
    """That of all work: what a column's filter compares with keeps its meaning when a part is chosen."""
    of_all = lines(shown.whole, shown.view.tab) if shown.is_part else listed
    return time_unit(one.cells[key] for one in of_all for key in ("control_us", "test_us"))


def _grid(shown: Shown, listed: list[Line]) -> Any:
    view, unit = shown.view, _unit(shown, listed)
    return AgGrid(
        id="grid",
        columnDefs=[column(key, unit, view) for key in COLUMNS[view.tab]],
        filterModel=view.table.filters(),
        rowData=[
            {**one.cells, **{key: round(unit.scaled(one.cells[key]), 6) for key in TIMES if key in one.cells}}
            for one in listed
        ],
        defaultColDef={
            "sortable": True,
            "filter": True,
            "resizable": True,
            "minWidth": 70,
            "wrapHeaderText": True,
            "autoHeaderHeight": True,
        },
        getRowId="params.data.key",
        selectedRows={"ids": [view.row]} if view.row else [],
        csvExportParams={
            "fileName": f"tracediff-{view.tab}.csv",
            "processCellCallback": {"function": "plainCell(params)"},
        },
        dashGridOptions={
            "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
            "animateRows": False,
            "rowHeight": 30,
            "suppressFieldDotNotation": True,
            "ensureDomOrder": True,
        },
        dangerously_allow_code=False,
        style={"height": "36rem"},
    )


def column(key: str, unit: Unit, view: View) -> dict[str, Any]:
    """What the grid is told of a column of ``view``; times are in ``unit``."""
    name = f"{HEADS[key]} ({unit.name})" if key in TIMES else HEADS[key]
    hidden, pinned = key not in (view.table.shown or usual(view.tab)), key in (view.table.pinned or PINNED)
    of: dict[str, Any] = {
        "field": key,
        "headerName": name,
        "headerTooltip": TOLD.get(key),
        "hide": hidden,
        "pinned": "left" if pinned else None,
    }
    order, rank = view.table.order().get(key, (None, None))
    if order:
        of |= {"initialSort": order, "initialSortIndex": rank}
    if key in WIDTHS:
        return {**of, "filter": "agTextColumnFilter", "width": WIDTHS[key], "tooltipField": key, "cellDataType": "text"}
    shape = "count(params.value)" if "count" in key else f"number(params.value, {unit.decimals})"
    number = {
        "type": "rightAligned",
        "filter": "agNumberColumnFilter",
        "width": 92,
        "cellDataType": "number",
        "valueFormatter": {"function": shape},
    }
    if key != "delta_us":
        return {**of, **number}
    return {**of, **number, "comparator": {"function": "bySize"}, "sortingOrder": ["desc", "asc", None]}
