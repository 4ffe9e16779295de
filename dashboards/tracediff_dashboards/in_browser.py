"""Which properties of which components every callback reads and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dash import ClientsideFunction, Dash, Input, Output, State

from tracediff_dashboards.state.controls import CONTROLS

if TYPE_CHECKING:
    from tracediff_dashboards.app import Dashboard

CHOSEN_FROM = ("control", "test", "phase", "family", "module", "rank", "test-rank")
"""Controls whose options depend on the sets."""


def register(app: Dash, dashboard: Dashboard) -> None:
    """Connect the callbacks that run here."""
    address = [Input("url", "pathname"), Input("url", "search"), Input("theme", "data"), Input("ready", "data")]
    set_controls = [Input(key, "value") for key in CONTROLS]
    page_controls = [
        Input("flame-view", "data", allow_optional=True),
        Input("grid", "selectedRows", allow_optional=True),
    ]
    page_controls += [Input(key, "value", allow_optional=True) for key in ("at-control", "at-test")]
    page_controls += [
        Input("window", "data", allow_optional=True),
        *(Input(key, "value", allow_optional=True) for key in ("columns", "pinned")),
    ]
    page_controls += [Input("grid", key, allow_optional=True) for key in ("columnState", "filterModel")]
    buttons = [Input("swap", "n_clicks"), Input("clear", "n_clicks"), Input("dropped", "data")]
    choices = [*(Output(key, "value") for key in CONTROLS), *(Output(key, "options") for key in CHOSEN_FROM)]
    page = [
        Output("page", "children"),
        Output("nav", "children"),
        Output("poll", "disabled"),
        Output("cancel", "hidden"),
        Output("unfiltered", "hidden"),
        Output("shown", "data"),
    ]
    # one callback, because the URL and the controls set each other
    app.callback(
        [Output("url", "search"), *choices, *page],
        [*address, *set_controls, *page_controls, *buttons],
        State("shown", "data"),
    )(dashboard.show_page)
    app.callback(
        [Output("status", "children"), Output("ready", "data"), Output("poll", "disabled", allow_duplicate=True)],
        [Input("poll", "n_intervals"), Input("again", "n_clicks", allow_optional=True)],
        [State("url", "search"), State("ready", "data")],
        prevent_initial_call=True,
    )(dashboard.poll)
    app.callback(Input("cancel", "n_clicks"), State("url", "search"), prevent_initial_call=True)(dashboard.cancel)
    app.callback(
        Output("details", "children"),
        Input("grid", "selectedRows"),
        [State("url", "search"), State("theme", "data")],
        prevent_initial_call=True,
    )(dashboard.show_details)
    app.callback(
        Output("spans", "children"), Input("spans-of", "data"), [State("url", "search"), State("theme", "data")]
    )(dashboard.show_spans)
    app.callback(
        [Output("flame-row", "children"), Output("flame-row", "hidden")],
        Input("flame-view", "data"),
        [State("url", "search"), State("theme", "data")],
        prevent_initial_call=True,
    )(dashboard.show_zoomed)
    timeline_inputs = [
        Input("at-control", "value"),
        Input("at-test", "value"),
        Input("chart-timeline", "relayoutData"),
    ]
    timeline_outputs = [
        Output("chart-timeline", "figure"),
        Output("chart-timeline", "style"),
        Output("caption-timeline", "children"),
        Output("window", "data"),
    ]
    app.callback(timeline_outputs, timeline_inputs, [State("url", "search"), State("theme", "data")])(
        dashboard.draw_timeline
    )
    app.callback(
        Output("followed", "children"),
        Input("chart-timeline", "clickData"),
        State("url", "search"),
        prevent_initial_call=True,
    )(dashboard.show_linked)


def register_in_browser(app: Dash) -> None:
    """Connect the callbacks of assets/theme.js, which run in the browser."""
    app.clientside_callback(
        ClientsideFunction("flame", "draw"), Output("flame-graph", "title"), Input("flame-data", "data")
    )
    app.clientside_callback(
        ClientsideFunction("theme", "choose"),
        [Output("theme", "data"), Output("theme-button", "children")],
        [Input("theme-button", "n_clicks"), Input("asked-theme", "data")],
        State("theme", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("upload", "send"),
        [Output("dropped", "data"), Output("notice", "children")],
        Input("upload", "contents"),
        State("upload", "filename"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("perfetto", "open"),
        Output("perfetto-status", "children"),
        Input("perfetto", "n_clicks"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("link", "copy"),
        Output("copy", "children"),
        Input("copy", "n_clicks"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("grid", "download"),
        Output("grid", "exportDataAsCsv"),
        Input("csv", "n_clicks"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("grid", "columns"),
        Output("grid", "columnDefs"),
        [Input("columns", "value"), Input("pinned", "value")],
        State("grid", "columnDefs"),
        prevent_initial_call=True,
    )

    row_count_inputs = [Input("grid", "virtualRowData"), State("grid", "rowData"), State("rows", "title")]
    app.clientside_callback(
        ClientsideFunction("grid", "count"), Output("rows", "children"), row_count_inputs, prevent_initial_call=True
    )
