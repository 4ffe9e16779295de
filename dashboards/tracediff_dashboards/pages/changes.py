"""The page of all operators, kernels, modules, families and groups: a table, and a panel for the selected row."""

from typing import Any

from dash import dcc, html
from dash_ag_grid import AgGrid

from tracediff import bounds
from tracediff.diff.views import UNKNOWN
from tracediff.formatting import Unit, plural, time_unit
from tracediff.present.columns import TEXT, TIME, RowColumn
from tracediff.present.setting import side_names
from tracediff.structs import Pair
from tracediff_dashboards.pages import components
from tracediff_dashboards.pages.details import details
from tracediff_dashboards.pages.rows import TITLES, TableRow, no_modules, table_rows
from tracediff_dashboards.reading.comparisons import PageContext
from tracediff_dashboards.state.view import (
    COLUMNS,
    OF_TABS,
    PINNED,
    TableLayout,
    View,
    default_columns,
)

NAME_PX, NAME_END = 8, 16
"""Width of a letter of a name, and how many letters are its end where its middle is left out."""
LETTER_PX, FUNNEL_PX = 8, 48
"""Widths of a letter of a heading, and of what is beside it: words of a heading are not broken."""


def page(context: PageContext) -> list[Any]:
    """The components: tabs, the table of the selected tab, and the panel of the selected row."""
    tab = context.view.tab
    rows = table_rows(context.comparison, tab)
    if tab == "modules" and all(row.item.name == UNKNOWN for row in rows):
        rows = []
    head = [html.H1("Changes"), _tabs(context.view)]
    if not rows:
        return [*head, _empty(context), html.Div(AgGrid(id="grid", rowData=[], columnDefs=[]), hidden=True)]
    selected = next((row for row in rows if row.key == context.view.row), None)
    panel = html.Aside(
        _details(context, selected),
        id="details",
        className="details",
        tabIndex=-1,
        **components.attributes(aria_label="Selected row", aria_live="polite"),
    )
    return [
        *head,
        _tools(context, rows),
        html.Div([html.Div(_grid(context, rows), className="gridbox"), panel], className="beside"),
    ]


def _tabs(view: View) -> Any:
    """Links to the kinds of work; each has rows and columns of its own."""
    links = []
    for key, title in TITLES.items():
        query = view.replace(tab=key, row="", table=TableLayout()).query()
        current = components.attributes(aria_current="page") if key == view.tab else {}
        links.append(
            html.Span(dcc.Link(title, href=f"/changes{query}", className="current" if current else ""), **current)
        )
    return html.Nav(links, id="tab", className="tabs", **components.attributes(aria_label="Kind of work"))


def _details(context: PageContext, selected: TableRow | None) -> list[Any]:
    if selected is not None:
        return details(context, selected)
    if context.view.row:
        return [components.missing("The selected row is hidden by a filter: clear a filter above.")]
    return [
        components.missing("Select a row (click or Space) to see its matches, its time per step and its call sites.")
    ]


def _empty(context: PageContext) -> Any:
    if context.whole.was_refused:
        return components.missing(
            "The sets were not compared; the overview gives the reasons and a link to compare them anyway."
        )
    if context.is_filtered:
        return components.missing("The filters leave no work of this kind: clear a filter above.")
    if context.view.tab == "modules":
        return components.missing(["Nothing to show: ", *no_modules(context)])
    kind = "GPU work" if context.view.tab == "kernels" else "work of this kind"
    return components.missing(f"The traces contain no {kind}.")


def _tools(context: PageContext, rows: list[TableRow]) -> Any:
    view, names = context.view, side_names(context.whole)
    options = [{"label": column.heading(names), "value": key} for key, column in OF_TABS[view.tab].items()]
    visible, pinned = list(view.table.visible or default_columns(view.tab)), list(view.table.pinned or PINNED)
    times = "host self times" if view.tab in ("ops", "scopes") else "times"
    more = " of many" if len(rows) == bounds.SEARCHED_ROWS else ""
    caption = f"{plural(len(rows), 'row')}{more}, the largest change first; counts and {times} {context.whole.basis}"
    return html.Div(
        [
            html.Span(caption, id="rows", title=caption, className="facts"),
            *(
                html.Div(
                    components.choice(
                        key, key, options=options, value=value, multi=True, searchable=False, clearable=False
                    )
                )
                for key, value in (("columns", visible), ("pinned", pinned))
            ),
            html.Button("Download CSV", id="csv"),
        ],
        className="tools",
    )


def _grid(context: PageContext, rows: list[TableRow]) -> Any:
    view, names = context.view, side_names(context.whole)
    # of all work, whatever the filters, so that the numbers in column filters keep their meaning
    all_rows = table_rows(context.whole, view.tab) if context.is_filtered else rows
    unit = time_unit(context.comparison.us(max(row.item.time)) for row in all_rows)
    return AgGrid(
        id="grid",
        columnDefs=[column(row_column, unit, view, names) for row_column in OF_TABS[view.tab].values()],
        filterModel=view.table.filters(),
        rowData=[
            {
                key: round(unit.scaled(cell), 6) if key in COLUMNS and COLUMNS[key].kind == TIME else cell
                for key, cell in row.cells.items()
            }
            for row in rows
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


def column(row_column: RowColumn, unit: Unit, view: View, names: Pair[str]) -> dict[str, Any]:
    """The definition of a column for the grid; times are in ``unit``, ``names`` those of the sides."""
    key, head = row_column.name, row_column.heading(names)
    order, rank = view.table.order().get(key, (None, None))
    definition: dict[str, Any] = {
        "field": key,
        "headerName": f"{head} ({unit.name})" if row_column.kind == TIME else head,
        "headerTooltip": row_column.help,
        "hide": key not in (view.table.visible or default_columns(view.tab)),
        "pinned": "left" if key in (view.table.pinned or PINNED) else None,
        "width": max(row_column.width, LETTER_PX * max(map(len, head.split())) + FUNNEL_PX),
        **({"initialSort": order, "initialSortIndex": rank} if order else {}),
    }
    if row_column.kind == TEXT:
        if key in ("name", "kernels"):
            length = definition["width"] // NAME_PX
            end = length if view.tab == "modules" else NAME_END  # paths differ at their ends
            definition["valueFormatter"] = {"function": f"shortened(params.value, {length}, {end})"}
            definition["floatingFilter"] = key == "name"  # a search that needs no menu
        return {**definition, "filter": "agTextColumnFilter", "tooltipField": key, "cellDataType": "text"}
    in_unit = f"{'change' if row_column.is_change else 'number'}(params.value, {unit.decimals})"
    formatter = in_unit if row_column.kind == TIME else f"{row_column.kind}(params.value)"
    return {
        **definition,
        "type": "rightAligned",
        "filter": "agNumberColumnFilter",
        "cellDataType": "number",
        "valueFormatter": {"function": formatter},
        "sortingOrder": ["desc", "asc", None],
    }
