"""The app and its callbacks: what happens when the URL, a control or a button changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import flask
from dash import Dash, ctx, html, no_update
from werkzeug.exceptions import BadRequest

from tracediff.aggregate.traceset import TraceSet
from tracediff.diff.comparison import Comparison
from tracediff.diff.verdict import Judging
from tracediff.errors import TracediffError
from tracediff.load_options import LoadOptions
from tracediff.report.page.html import palettes, resource
from tracediff_dashboards import layout
from tracediff_dashboards.callbacks import CHOSEN_FROM, register, register_in_browser
from tracediff_dashboards.pages import components, draw, flame, page_at, timeline
from tracediff_dashboards.pages.details import details, spans
from tracediff_dashboards.pages.page_context import PageContext
from tracediff_dashboards.pages.rows import TableRow, find_row
from tracediff_dashboards.reading.comparisons import Comparisons
from tracediff_dashboards.reading.loading import Load, Loader
from tracediff_dashboards.reading.merged_step import merged_step
from tracediff_dashboards.reading.sets import Sets, is_choosable
from tracediff_dashboards.reading.step_inspector import StepInspector, has_range, is_kept, window_of
from tracediff_dashboards.state.controls import CONTROLS, OTHERS, changed, changed_controls, row_of, values_of
from tracediff_dashboards.state.view import View, view_of
from tracediff_dashboards.web import failures
from tracediff_dashboards.web.security import protect

UPLOAD_TYPE = "application/octet-stream"
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{%title%}</title>
<link rel="stylesheet" href="/palette.css">
<link rel="stylesheet" href="/flame.css">
<script src="/flame.js"></script>
<script src="/perfetto.js"></script>
{%css%}
</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""


class Dashboard:
    """A running app and its parts.

    Attributes:
        sets, loader, comparisons, step_inspector: see their classes. app: the Dash app; serve ``app.server``.
    """

    def __init__(
        self,
        sets: Sets,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        theme: str = "auto",
        options: LoadOptions | None = None,
        judging: Judging | None = None,
        force: bool = False,
    ) -> None:
        """See `make_app`."""
        self.sets = sets
        self.loader = Loader(sets, options)
        self.comparisons = Comparisons(self.loader, judging, force)
        self.step_inspector = StepInspector(self.loader.options.step_marker)
        folder = Path(__file__).parent / "assets"
        self.app = Dash(
            __name__,
            assets_folder=str(folder),
            use_pages=False,
            suppress_callback_exceptions=True,
            serve_locally=True,
            title="tracediff",
            update_title="",
            index_string=INDEX,
            add_log_handler=False,
            on_error=failures.show,
        )
        self.app.layout = layout.shell(theme)
        register(self.app, self)
        register_in_browser(self.app)
        self.app.server.add_url_rule("/upload", "upload", self.store_dropped, methods=["POST"])
        self.app.server.add_url_rule("/merged-step", "merged-step", self.send_merged_step)
        self._serve("palette.css", palettes(), "text/css")
        self._serve("flame.css", resource("flame.css"), "text/css")
        self._serve("flame.js", resource("flame.js"), "text/javascript")
        self._serve("perfetto.js", resource("perfetto.js"), "text/javascript")
        protect(self.app, host, token)

    def _serve(self, name: str, text: str, mimetype: str) -> None:
        """Serve ``text``, which the report has too, under ``name``."""
        self.app.server.add_url_rule(f"/{name}", name, lambda: flask.Response(text, mimetype=mimetype))

    def close(self) -> None:
        """Stop reading, and remove dropped files."""
        self.loader.close()
        self.step_inspector.close()
        self.sets.uploads.close()

    def show_page(
        self, pathname: str | None, search: str | None, theme: str | None, ready: int, *values: Any
    ) -> list[Any]:
        """Draw the page of a URL, and update the URL when a control has changed."""
        *control_values, before = values
        view, which = view_of(search), page_at(pathname)
        controls = changed_controls(ctx.triggered_prop_ids)
        if controls and "url" not in controls:
            view = changed(view, controls, dict(zip((*CONTROLS, *OTHERS), control_values, strict=True)))
        elif not (view.control or view.test) and len(self.sets.given) > 1:  # the first page
            control, test = list(self.sets.given)[:2]
            view = replace(view, control=control, test=test)
        address = view.query() if view.query() != (search or "") else no_update
        now = [pathname, view.page_state.query(), theme, ready, view.query()]
        if (
            before and before[:4] == now[:4] and ("url" not in controls or before == now)
        ):  # the table and the timeline update themselves
            return [
                address,
                *[no_update] * len(CONTROLS),
                *[no_update] * len(CHOSEN_FROM),
                no_update,
                layout.links(which, view),
                *[no_update] * 3,
                now,
            ]
        names = layout.set_options(self.sets.names(), view)
        page, options, waits = self._page(which, view, _known(theme))
        return [
            address,
            *values_of(view),
            names,
            names,
            *options,
            page,
            layout.links(which, view),
            not waits,
            not waits,
            view.filters.part.is_all,
            now,
        ]

    def _page(self, which: str | None, view: View, theme: str) -> tuple[Any, list[Any], bool]:
        """(components, options of the filters, whether to poll again)."""
        filters = view.filters
        current_options = [
            [{"label": str(v), "value": v} for v in selected if is_choosable(str(v))]
            for selected in (filters.phases, filters.families, filters.modules, filters.ranks, filters.test_ranks)
        ]
        if which is None:
            return components.alert("This page does not exist; choose one above."), current_options, False
        if not (view.control and view.test):
            return _nothing_chosen(bool(self.sets.names())), current_options, False
        try:
            found = self.comparisons.whole(view)
            if isinstance(found, Load):
                if found.finished.is_set() and found.error:
                    return (
                        components.alert(found.error, html.Button("Try again", id="again", type="button")),
                        current_options,
                        False,
                    )
                return (
                    html.P("The page appears when both sets have been read.", className="missing"),
                    current_options,
                    True,
                )
            part = self.comparisons.part(view)
            assert not isinstance(part, Load)
        except TracediffError as error:
            return components.error_alert(error), current_options, False
        options = layout.filter_options(found[0], self.comparisons.ranks(view), view)
        page = draw(which, PageContext(part, found[0], found[1], view, theme))
        return page, [options[key] for key in CHOSEN_FROM[2:]], False

    def poll(self, intervals: int | None, again: int | None, search: str | None, ready: int) -> list[Any]:  # noqa: ARG002  # ctx contains what has changed
        """Show the progress of the load; when it has ended, redraw the page."""
        view = view_of(search)
        if ctx.triggered_id == "again":
            if not again:
                return [no_update] * 3
            self.loader.forget(view.control, view.test)
            return ["", ready + 1, True]
        load = self.loader.find(view.control, view.test)
        if load is None or load.finished.is_set():
            return ["", ready + 1, True]
        return [_progress(load), no_update, no_update]

    def cancel(self, clicks: int | None, search: str | None) -> None:
        """Cancel the load of the sets in the URL."""
        view = view_of(search)
        load = self.loader.find(view.control, view.test)
        if clicks and load is not None:
            load.cancel()

    def show_details(self, selected: Any, search: str | None, theme: str | None) -> Any:
        """The panel of the selected row."""
        try:
            context, row = self._row(row_of(selected), search, theme)
        except TracediffError as error:
            return components.error_alert(error)
        return details(context, row) if context is not None and row is not None else no_update

    def show_spans(self, key: str | None, search: str | None, theme: str | None) -> Any:
        """When the work of the selected row runs."""
        try:
            context, row = self._row(key, search, theme)
            return spans(context, row, self.step_inspector) if context is not None and row is not None else no_update
        except TracediffError as error:
            return components.error_alert(error)

    def _row(
        self, key: str | None, search: str | None, theme: str | None
    ) -> tuple[PageContext | None, TableRow | None]:
        """(what is shown, the row with a key); None while the sets are being read, and if there is no such row."""
        view = view_of(search)
        context = self._context(view, theme) if key else None
        return context, find_row(context.comparison, view.tab, str(key)) if context is not None else None

    def show_zoomed(self, state: Any, search: str | None, theme: str | None) -> list[Any]:
        """The panel of the box that the flame graph is zoomed to, and whether it is hidden."""
        node = state.get("node") if isinstance(state, dict) else None
        if not isinstance(node, dict):
            return [[], True]
        view = changed(view_of(search), {"flame-view"}, {"flame-view": state})
        context = self._context(view, theme)
        panel = flame.zoomed(context, str(node.get("kind")), str(node.get("name"))) if context is not None else []
        return [panel, not panel]

    def _context(self, view: View, theme: str | None) -> PageContext | None:
        """What a view shows, None while its sets are being read."""
        found = self._compared(view)
        part = self.comparisons.part(view) if found is not None else None
        if found is None or part is None or isinstance(part, Load):
            return None
        return PageContext(part, found[0], found[1], view, _known(theme))

    def _compared(self, view: View) -> tuple[Comparison, tuple[TraceSet, TraceSet]] | None:
        """The comparison of a view and its sets, None while they are being read."""
        found = self.comparisons.whole(view) if view.control and view.test else None
        return None if isinstance(found, Load) else found

    def draw_timeline(
        self, at_control: str | None, at_test: str | None, relayout: Any, search: str | None, theme: str | None
    ) -> Any:
        """The timeline of the selected steps, within the selected window."""
        view = view_of(search)
        try:
            found = self._compared(view)
        except TracediffError as error:
            return [no_update, no_update, components.error_alert(error), no_update]
        if found is None:
            return [no_update] * 4
        whole, sets = found
        sides = list(
            zip(sets, (at_control or "", at_test or ""), (whole.control.typical, whole.test.typical), strict=True)
        )
        if all(is_kept(*each) for each in sides) and not (view.window or has_range(relayout)):
            for each in sides:
                self.step_inspector.prepare(*each)
            return [no_update] * 4
        try:
            window = window_of(
                relayout, timeline.unit_us([self.step_inspector.length_us(*each) for each in sides]), view.window
            )
            steps = [self.step_inspector.step(*each, window) for each in sides]
        except TracediffError as error:
            return [no_update, no_update, components.error_alert(error), no_update]
        figure = timeline.zoomed(whole, steps, window, _known(theme))
        return [figure, {"height": f"{figure.layout.height}px"}, timeline.caption(steps), window]

    def show_linked(self, clicked: Any, search: str | None) -> Any:
        """The table of the clicked event, its launch and the calls around it."""
        view = view_of(search)
        which, _, event = str(((clicked or {}).get("points") or [{}])[0].get("id") or "").partition(":")
        if which not in ("0", "1") or not (event.isascii() and event.isdigit() and len(event) < 16):
            return []
        try:
            found = self._compared(view)
            if found is None:
                return []
            whole, sets = found
            side = int(which)
            key, typical = (view.at_control, view.at_test)[side], (whole.control, whole.test)[side].typical
            return timeline.linked_table(self.step_inspector.follow(sets[side], key, typical, int(event)))
        except TracediffError as error:
            return components.error_alert(error)

    def send_merged_step(self) -> flask.Response:
        """The shown step of both sides as one trace, for the view in the query."""
        view = view_of(flask.request.query_string.decode("ascii", "replace"))
        found = self._compared(view)
        if found is None:
            raise TracediffError("dashboard", "no comparison is loaded", "open the timeline again")
        whole, sets = found
        at = (view.at_control, view.at_test)
        steps = [
            self.step_inspector.step(traces, key, side.typical, None)
            for traces, key, side in zip(sets, at, (whole.control, whole.test), strict=True)
        ]
        return flask.Response(merged_step(whole, steps), mimetype="application/gzip")

    def store_dropped(self) -> flask.Response:
        """Store the dropped file that is the content of a request; returns the name of its set."""
        request = flask.request
        if request.mimetype != UPLOAD_TYPE or request.content_length is None:  # other sites may send other types
            raise BadRequest(f"The content type is not {UPLOAD_TYPE}, or there is no content length.")
        request.max_content_length = request.content_length  # `Uploads.add` has its own maximum
        name = self.sets.uploads.add(request.args.get("name", ""), request.stream, request.content_length)
        return flask.Response(name, mimetype="text/plain")


def make_app(
    sets: Sets,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    theme: str = "auto",
    options: LoadOptions | None = None,
    judging: Judging | None = None,
    force: bool = False,
) -> Dashboard:
    """The app for ``sets``.

    Args:
        host: address it will be bound to. token: token that every request must contain, None for none; see
            `security.protect`.
        theme: light, dark or auto. options: how sets are read.
        judging: options of the statistics. force: compare even if the preflight refuses.
    """
    return Dashboard(sets, host=host, token=token, theme=theme, options=options, judging=judging, force=force)


def _known(theme: str | None) -> str:
    """The theme if it is light or dark, else light: the browser may send anything."""
    return theme if theme in ("light", "dark") else "light"


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
