"""The parts of pages that callbacks fill: the selected row, the zoomed box, the timeline and its events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec

from dash import Dash, Input, Output, State, no_update

from tracediff.errors import TracediffError
from tracediff_dashboards.pages import components, flame, timeline
from tracediff_dashboards.pages.details import details, spans
from tracediff_dashboards.pages.rows import TableRow, find_row
from tracediff_dashboards.reading.comparisons import Comparisons
from tracediff_dashboards.reading.page_context import PageContext
from tracediff_dashboards.reading.step_inspector import StepInspector, has_range, is_kept, window_of
from tracediff_dashboards.state.controls import changed, row_of
from tracediff_dashboards.state.view import view_of

VIEW = [State("url", "search"), State("theme", "data")]
Given = ParamSpec("Given")


def _or_alert(callback: Callable[Given, Any]) -> Callable[Given, Any]:
    """``callback``, whose error is shown in the place of what it draws."""

    @wraps(callback)
    def shown(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        try:
            return callback(*args, **kwargs)
        except TracediffError as error:
            return components.error_alert(error)

    return shown


class Panels:
    """The callbacks of the parts, over the comparisons and the events of single steps."""

    def __init__(self, comparisons: Comparisons, step_inspector: StepInspector) -> None:
        self._comparisons = comparisons
        self._inspector = step_inspector

    def register(self, app: Dash) -> None:
        """Connect the callbacks."""
        app.callback(Output("details", "children"), Input("grid", "selectedRows"), VIEW, prevent_initial_call=True)(
            self.show_details
        )
        app.callback(Output("spans", "children"), Input("spans-of", "data"), VIEW)(self.show_spans)
        app.callback(
            [Output("flame-row", "children"), Output("flame-row", "hidden")],
            Input("flame-view", "data"),
            VIEW,
            prevent_initial_call=True,
        )(self.show_zoomed)
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
        app.callback(
            Output("followed", "children"), Input("chart-timeline", "clickData"), VIEW, prevent_initial_call=True
        )(self.show_linked)

    def _context(self, search: str | None, theme: str | None) -> PageContext | None:
        return self._comparisons.context(view_of(search), theme)

    @_or_alert
    def show_details(self, selected: Any, search: str | None, theme: str | None) -> Any:
        """The panel of the selected row."""
        shown = self._row(row_of(selected), search, theme)
        return details(*shown) if shown else no_update

    @_or_alert
    def show_spans(self, key: str | None, search: str | None, theme: str | None) -> Any:
        """When the work of the selected row runs."""
        shown = self._row(key, search, theme)
        return spans(*shown, self._inspector) if shown else no_update

    def _row(self, key: str | None, search: str | None, theme: str | None) -> tuple[PageContext, TableRow] | None:
        """(what is shown, the row with a key); None while the sets are being read, and if there is no such row."""
        context = self._context(search, theme) if key else None
        row = find_row(context.comparison, context.view.tab, key) if context is not None else None
        return (context, row) if context is not None and row is not None else None

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
        view = replace(view_of(search), at_control=at_control or "", at_test=at_test or "")
        try:
            context = self._comparisons.context(view, theme)
            if context is None:
                return [no_update] * 4
            sides = context.shown_steps
            if all(is_kept(*side) for side in sides) and not (view.window or has_range(relayout)):
                for side in sides:
                    self._inspector.prepare(*side)
                return [no_update] * 4
            unit_us = timeline.unit_us([self._inspector.length_us(*side) for side in sides])
            window = window_of(relayout, unit_us, view.window)
            steps = [self._inspector.step(*side, window) for side in sides]
        except TracediffError as error:
            return [no_update, no_update, components.error_alert(error), no_update]
        figure = timeline.zoomed(context.whole, steps, window, context.theme)
        return [figure, {"height": f"{figure.layout.height}px"}, timeline.caption(steps), window]

    @_or_alert
    def show_linked(self, clicked: Any, search: str | None, theme: str | None) -> Any:
        """The table of the clicked event, its launch and the calls around it."""
        side, _, event = str(((clicked or {}).get("points") or [{}])[0].get("id") or "").partition(":")
        if side not in ("0", "1") or not (event.isascii() and event.isdigit() and len(event) < 16):
            return []
        context = self._context(search, theme)
        if context is None:
            return []
        return timeline.linked_table(self._inspector.follow(*context.shown_steps[int(side)], int(event)))
