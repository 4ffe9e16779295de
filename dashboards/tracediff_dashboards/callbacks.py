"""The callbacks: what happens when the URL, a control or a button changes, and while sets are being read; the parts of
pages that are filled later (the selected row, the zoomed box, the timeline and its events); and those of
assets/theme.js, which run in the browser.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update

from tracediff import bounds
from tracediff.errors import TracediffError, whole_number
from tracediff_dashboards import layout
from tracediff_dashboards.pages import PAGES, components, flame, page_at, timeline
from tracediff_dashboards.pages.details import details, spans
from tracediff_dashboards.pages.rows import TableRow, find_row
from tracediff_dashboards.reading.comparisons import Comparisons, PageContext
from tracediff_dashboards.reading.loading import Load
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.reading.step_inspector import StepInspector, time_axes, window_of
from tracediff_dashboards.state.controls import CONTROLS, PROPERTIES, changed, row_of, values_of
from tracediff_dashboards.state.view import TABS, Filters, View, view_of

CHOSEN_FROM = ("control", "test", *layout.FILTERED_BY)
"""Controls whose options depend on the sets."""
RANKS = ("rank", "test-rank")
"""The last of them: they are shown of sets with several ranks."""
ALWAYS = [Output("url", "search"), Output("nav", "children"), Output("shown", "data")]
"""What every change sets."""
PAGE = [
    *(Output(key, "value") for key in CONTROLS),
    *(Output(key, "options") for key in CHOSEN_FROM),
    Output("page", "children"),
    Output("poll", "disabled"),
    Output("cancel", "hidden"),
    Output("unfiltered", "hidden"),
    Output("filters", "open"),
    *(Output(f"{key}-field", "hidden") for key in RANKS),
]
"""What a new page sets."""
VIEW = [State("url", "search"), State("theme", "data")]


def _or_alert(callback: Callable[..., Any]) -> Callable[..., Any]:
    """``callback``, whose error is shown in the place of what it draws."""

    @wraps(callback)
    def with_alert(*args: Any) -> Any:
        try:
            return callback(*args)
        except TracediffError as error:
            return components.error_alert(error)

    return with_alert


class Callbacks:
    """The callbacks of the server, over the comparisons of sets and the events of single steps."""

    def __init__(self, comparisons: Comparisons, step_inspector: StepInspector) -> None:
        self._comparisons, self._inspector = comparisons, step_inspector
        self._loader = comparisons.loader
        self._sets = comparisons.loader.sets

    def register(self, app: Dash) -> None:
        """Connect the callbacks."""
        on_change = partial(app.callback, prevent_initial_call=True)
        address = [Input("url", "pathname"), Input("url", "search"), Input("theme", "data"), Input("ready", "data")]
        names = (name.split(".") for name in PROPERTIES.values())
        controls = [Input(component, value, allow_optional=True) for component, value in names]
        # one callback, because the URL and the controls set each other
        app.callback([*ALWAYS, *PAGE], [*address, *controls], State("shown", "data"))(self.show_page)
        on_change(
            [Output("status", "children"), Output("ready", "data"), Output("poll", "disabled", allow_duplicate=True)],
            [Input("poll", "n_intervals"), Input("again", "n_clicks", allow_optional=True)],
            [State("url", "search"), State("ready", "data")],
        )(self.poll)
        on_change(Input("cancel", "n_clicks"), State("url", "search"))(self.cancel)
        on_change(Output("details", "children"), Input("grid", "selectedRows"), VIEW)(self.show_details)
        app.callback(Output("spans", "children"), Input("spans-of", "data"), VIEW)(self.show_spans)
        flame_row = [Output("flame-row", "children"), Output("flame-row", "hidden")]
        on_change(flame_row, Input("flame-view", "data"), VIEW)(self.show_zoomed)
        app.callback(
            [
                Output("chart-timeline", "figure"),
                Output("chart-timeline", "style"),
                Output("caption-timeline", "children"),
                Output("window", "data"),
            ],
            [Input("at-control", "value"), Input("at-test", "value"), Input("chart-timeline", "relayoutData")],
            VIEW,
        )(self.draw_timeline)
        on_change(Output("followed", "children"), Input("chart-timeline", "clickData"), VIEW)(self.show_linked)
        for (namespace, name), properties in IN_BROWSER.items():
            function = ClientsideFunction(namespace, name)
            app.clientside_callback(function, *properties, prevent_initial_call=namespace not in IMMEDIATE)

    def show_page(
        self, pathname: str | None, search: str | None, theme: str | None, ready: int, *values: Any
    ) -> list[Any]:
        """Draw the page of a URL, and update the URL when a control has changed."""
        *control_values, before = values
        sent = dict(zip(PROPERTIES, control_values, strict=True))
        view, which = view_of(search), page_at(pathname)
        is_address = any(name.startswith("url.") for name in ctx.triggered_prop_ids)
        controls = {control for control, name in PROPERTIES.items() if name in ctx.triggered_prop_ids}
        if controls and not is_address:
            view = changed(view, controls, sent)
        elif not (view.control or view.test) and len(self._sets.named_paths) > 1:  # the first page
            control, test = list(self._sets.named_paths)[:2]
            view = view.replace(control=control, test=test)
        query = view.query()
        now = [pathname, view.page_state.query(), theme, ready, query]
        always = [query if query != (search or "") else no_update, layout.links(which, view), now]
        if before and before[:4] == now[:4] and (not is_address or before == now):
            return [*always, *[no_update] * len(PAGE)]  # the table and the timeline update themselves
        page, options, is_done = self.page(which, view, theme)
        names = layout.set_options(self._sets.names(), view)
        # what is as it was asked for is left alone: it may have been changed again meanwhile
        new_values = [
            no_update if value == sent[key] else value for key, value in zip(CONTROLS, values_of(view), strict=True)
        ]
        fold = (
            no_update if view.filters.replace(rank=(), test_rank=()) == Filters() else True
        )  # else as the user left it
        one_rank = [len(ranks) < 2 for ranks in options[-len(RANKS) :]]
        parts = [page, is_done, is_done, view.filters.part.is_all, fold, *one_rank]
        return [*always, *new_values, *[names] * 2, *options, *parts]

    def page(self, which: str | None, view: View, theme: str | None) -> tuple[list[Any], list[Any], bool]:
        """(components, options of the filters, whether nothing more will come)."""
        options = layout.filter_options(view)
        if which is None:
            return [components.alert("This page does not exist; choose one above.")], options, True
        if not (view.control and view.test):
            return [_nothing_chosen(self._sets)], options, True
        try:
            context = self._comparisons.context(view, theme)
        except TracediffError as error:
            return [components.error_alert(error)], options, True
        if context is not None:
            options = layout.filter_options(view, context, self._comparisons.ranks(view))
            return PAGES[which][1](context), options, True
        load = self._loader.find(view.control, view.test)
        if load is not None and load.finished.is_set() and load.error:
            return [components.alert(load.error, html.Button("Try again", id="again"))], options, True
        return [components.missing("The page appears when both sets have been read.")], options, False

    def poll(self, intervals: int | None, again: int | None, search: str | None, ready: int) -> list[Any]:  # noqa: ARG002  # ctx contains what has changed
        """Show the progress of the load; when it has ended, redraw the page."""
        view = view_of(search)
        if ctx.triggered_id == "again":
            if not again:
                return [no_update] * 3
            self._loader.forget(view.control, view.test)
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

    @_or_alert
    def show_details(self, selected: Any, search: str | None, theme: str | None) -> Any:
        """The panel of the selected row."""
        context_and_row = self._row(view_of(search).tab, row_of(selected), search, theme)
        return details(*context_and_row) if context_and_row else no_update

    @_or_alert
    def show_spans(self, tab_and_key: str | None, search: str | None, theme: str | None) -> Any:
        """When the work of the selected row runs."""
        tab, _, key = (tab_and_key or "").partition(" ")
        context_and_row = self._row(tab, key, search, theme)
        return spans(*context_and_row, self._inspector) if context_and_row else no_update

    def _row(
        self, tab: str, key: str | None, search: str | None, theme: str | None
    ) -> tuple[PageContext, TableRow] | None:
        """(what is shown, the row of ``tab`` with a key); None while the sets are being read, or without it."""
        view = view_of(search).replace(tab=tab)
        context = self._comparisons.context(view, theme) if key and tab in TABS else None
        row = context and find_row(context.comparison, tab, key)
        return (context, row) if context and row else None

    def show_zoomed(self, state: Any, search: str | None, theme: str | None) -> list[Any]:
        """The panel of the box that the flame graph is zoomed to, and whether it is hidden."""
        node = (state or {}).get("node")
        if not node:
            return [[], True]
        view = changed(view_of(search), {"flame-view"}, {"flame-view": state})
        context = self._comparisons.context(view, theme)
        panel = flame.zoomed(context, node.get("kind", ""), node.get("name", "")) if context is not None else []
        return [panel, not panel]

    def draw_timeline(
        self, at_control: str | None, at_test: str | None, relayout: Any, search: str | None, theme: str | None
    ) -> list[Any]:
        """The timeline of the selected steps, within the selected window."""
        view = view_of(search).replace(at_control=at_control or "", at_test=at_test or "")
        try:
            context = self._comparisons.context(view, theme)
            if context is None:
                return [no_update] * 4
            sides, is_marked = context.shown_steps, bool(view.row) or context.is_filtered
            if all(side.is_kept for side in sides) and not (view.window or time_axes(relayout) or is_marked):
                for side in sides:
                    self._inspector.prepare(side)
                return [no_update] * 4
            unit_us = timeline.unit_us([self._inspector.length_us(side) for side in sides])
            window = window_of(relayout, unit_us, view.window)
            events, sentence = timeline.highlight(context, self._inspector)
            apart = zip(sides, events, strict=True)
            steps = [self._inspector.step(side, window, rows) for side, rows in apart]
        except TracediffError as error:
            return [no_update, no_update, components.error_alert(error), no_update]
        figure = timeline.zoomed(context.whole, steps, window, context.theme, events)
        return [figure, {"height": f"{figure.layout.height}px"}, timeline.caption(steps, sentence), window]

    @_or_alert
    def show_linked(self, clicked: Any, search: str | None, theme: str | None) -> Any:
        """The table of the clicked event, its launch and the calls around it."""
        side, _, event = str(((clicked or {}).get("points") or [{}])[0].get("id") or "").partition(":")
        if side not in ("0", "1"):
            return []
        row = whole_number(event)
        if row is None:
            return timeline.linked_table([])
        context = self._comparisons.context(view_of(search), theme)
        if context is None:
            return []
        return timeline.linked_table(self._inspector.follow(context.shown_steps[int(side)], row))


def _progress(load: Load) -> Any:
    progress = load.progress
    if progress is None or not progress.files:
        return ["Looking for traces …"]
    return [
        f"{progress.stage}: {progress}",
        html.Progress(value=f"{progress.fraction:.3f}", max="1", **components.attributes(aria_label="work done")),
    ]


def _nothing_chosen(sets: Sets) -> Any:
    links = sets.folder.links_outside() if sets.folder else []
    if sets.names():
        instruction = "Choose a control and a test above"
    elif links:
        instruction = (
            f"The folder contains no traces, but links that lead out of it ({', '.join(links[: bounds.ITEMS])}), which "
            f"are not followed: start the dashboard with two of them, or with the folder that they lead to"
        )
    else:
        instruction = "The folder that the dashboard was started with contains no traces: start it with another folder"
    return html.Div(
        [
            html.H1("Compare two sets of traces"),
            components.missing(f"{instruction}, or drop two trace files on the page."),
        ]
    )


IN_BROWSER: dict[tuple[str, str], list[Any]] = {
    ("flame", "draw"): [Output("flame-graph", "title"), Input("flame-data", "data")],
    ("theme", "choose"): [
        [Output("theme", "data"), Output("theme-button", "children")],
        [Input("theme-button", "n_clicks"), Input("asked-theme", "data"), State("theme", "data")],
    ],
    ("upload", "send"): [
        [Output("dropped", "data"), Output("notice", "children")],
        [Input("upload", "contents"), State("upload", "filename")],
    ],
    ("perfetto", "open"): [Output("perfetto-status", "children"), Input("perfetto", "n_clicks")],
    ("link", "copy"): [Output("copy", "children"), Input("copy", "n_clicks")],
    ("grid", "download"): [Output("grid", "exportDataAsCsv"), Input("csv", "n_clicks")],
    ("grid", "columns"): [
        Output("grid", "columnDefs"),
        [Input("columns", "value"), Input("pinned", "value"), State("grid", "columnDefs")],
    ],
    ("grid", "count"): [
        Output("rows", "children"),
        [Input("grid", "virtualRowData"), State("grid", "rowData"), State("rows", "title")],
    ],
}
"""Namespace and name of each function of assets/theme.js → what it sets, and what it reads."""
IMMEDIATE = ("flame", "theme")
"""Namespaces of those that also run when their components appear."""
