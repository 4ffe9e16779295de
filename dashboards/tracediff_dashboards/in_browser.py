"""The callbacks of assets/theme.js, which run in the browser."""

from __future__ import annotations

from dash import ClientsideFunction, Dash, Input, Output, State


def register(app: Dash) -> None:
    """Connect the callbacks."""
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
