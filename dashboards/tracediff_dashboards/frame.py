"""The frame of every page: what happens when the URL, a control or a button changes, and while sets are being read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update

from tracediff.errors import TracediffError
from tracediff_dashboards import layout
from tracediff_dashboards.pages import components, draw, page_at
from tracediff_dashboards.reading.comparisons import Comparisons
from tracediff_dashboards.reading.loading import Load
from tracediff_dashboards.state.controls import CONTROLS, PROPERTIES, changed, values_of
from tracediff_dashboards.state.view import View, view_of

CHOSEN_FROM = ("control", "test", *layout.FILTERED_BY)
"""Controls whose options depend on the sets."""
ALWAYS = [Output("url", "search"), Output("nav", "children"), Output("shown", "data")]
"""What every change sets."""
PAGE = [
    *(Output(key, "value") for key in CONTROLS),
    *(Output(key, "options") for key in CHOSEN_FROM),
    Output("page", "children"),
    Output("poll", "disabled"),
    Output("cancel", "hidden"),
    Output("unfiltered", "hidden"),
]
"""What a new page sets."""


class Frame:
    """The callbacks of the frame, over the sets that are read."""

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons
        self._loader = comparisons.loader
        self._sets = comparisons.loader.sets

    def register(self, app: Dash) -> None:
        """Connect the callbacks."""
        address = [Input("url", "pathname"), Input("url", "search"), Input("theme", "data"), Input("ready", "data")]
        controls = [
            Input(component, value, allow_optional=True)
            for component, value in (name.split(".") for name in PROPERTIES.values())
        ]
        # one callback, because the URL and the controls set each other
        app.callback([*ALWAYS, *PAGE], [*address, *controls], State("shown", "data"))(self.show_page)
        app.callback(
            [Output("status", "children"), Output("ready", "data"), Output("poll", "disabled", allow_duplicate=True)],
            [Input("poll", "n_intervals"), Input("again", "n_clicks", allow_optional=True)],
            [State("url", "search"), State("ready", "data")],
            prevent_initial_call=True,
        )(self.poll)
        app.callback(Input("cancel", "n_clicks"), State("url", "search"), prevent_initial_call=True)(self.cancel)

    def show_page(
        self, pathname: str | None, search: str | None, theme: str | None, ready: int, *values: Any
    ) -> list[Any]:
        """Draw the page of a URL, and update the URL when a control has changed."""
        *control_values, before = values
        view, which = view_of(search), page_at(pathname)
        is_address = any(name.startswith("url.") for name in ctx.triggered_prop_ids)
        controls = {control for control, name in PROPERTIES.items() if name in ctx.triggered_prop_ids}
        if controls and not is_address:
            view = changed(view, controls, dict(zip(PROPERTIES, control_values, strict=True)))
        elif not (view.control or view.test) and len(self._sets.given) > 1:  # the first page
            control, test = list(self._sets.given)[:2]
            view = replace(view, control=control, test=test)
        query = view.query()
        now = [pathname, view.page_state.query(), theme, ready, query]
        always = [query if query != (search or "") else no_update, layout.links(which, view), now]
        if before and before[:4] == now[:4] and (not is_address or before == now):
            return [*always, *[no_update] * len(PAGE)]  # the table and the timeline update themselves
        page, options, is_done = self.page(which, view, theme)
        names = layout.set_options(self._sets.names(), view)
        return [*always, *values_of(view), names, names, *options, page, is_done, is_done, view.filters.part.is_all]

    def page(self, which: str | None, view: View, theme: str | None) -> tuple[list[Any], list[Any], bool]:
        """(components, options of the filters, whether nothing more will come)."""
        chosen = layout.filter_options(view)
        if which is None:
            return [components.alert("This page does not exist; choose one above.")], chosen, True
        if not (view.control and view.test):
            return [_nothing_chosen(bool(self._sets.names()))], chosen, True
        try:
            context = self._comparisons.context(view, theme)
        except TracediffError as error:
            return [components.error_alert(error)], chosen, True
        if context is not None:
            return draw(which, context), layout.filter_options(view, context, self._comparisons.ranks(view)), True
        load = self._loader.find(view.control, view.test)
        if load is not None and load.finished.is_set() and load.error:
            return [components.alert(load.error, html.Button("Try again", id="again", type="button"))], chosen, True
        return [html.P("The page appears when both sets have been read.", className="missing")], chosen, False

    def poll(self, intervals: int | None, again: int | None, search: str | None, ready: int) -> list[Any]:  # noqa: ARG002  # ctx contains what has changed
        """Show the progress of the load; when it has ended, redraw the page."""
        view = view_of(search)
        if ctx.triggered_id == "again":
            if not again:
                return [no_update] * 3
            self._loader.forget(view.control, view.test)
            return ["", ready + 1, True]
        load = self._loader.find(view.control, view.test)
        if load is None or load.finished.is_set():
            return ["", ready + 1, True]
        return [_progress(load), no_update, no_update]

    def cancel(self, clicks: int | None, search: str | None) -> None:
        """Cancel the load of the sets in the URL."""
        view = view_of(search)
        load = self._loader.find(view.control, view.test)
        if clicks and load is not None:
            load.cancel()


def _progress(load: Load) -> Any:
    progress = load.progress
    if progress is None or not progress.files:
        return ["Looking for traces …"]
    return [
        f"{progress.stage}: {progress}",
        html.Progress(value=f"{progress.fraction:.3f}", max="1", **components.attributes(aria_label="work done")),
    ]


def _nothing_chosen(any_set: bool) -> Any:
    instruction = (
        "Choose a control and a test above"
        if any_set
        else "The folder that the dashboard was started with contains no traces: start it with another folder"
    )
    return html.Div(
        [
            html.H1("Compare two sets of traces"),
            html.P(f"{instruction}, or drop two trace files on the page.", className="missing"),
        ]
    )
