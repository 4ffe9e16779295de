"""The app: what it is made of, its files, and the requests that are not callbacks."""

import flask
from dash import Dash
from werkzeug.exceptions import BadRequest

from tracediff.diff.verdict import Judging
from tracediff.engine import LoadOptions
from tracediff.errors import TracediffError
from tracediff.report.page.html import palettes, resource
from tracediff_dashboards import layout
from tracediff_dashboards.callbacks import Callbacks
from tracediff_dashboards.reading.comparisons import Comparisons
from tracediff_dashboards.reading.events import merged_step
from tracediff_dashboards.reading.loading import Loader
from tracediff_dashboards.reading.sets import Sets
from tracediff_dashboards.reading.step_inspector import StepInspector
from tracediff_dashboards.security import protect, show
from tracediff_dashboards.state.view import view_of

UPLOAD_TYPE = "application/octet-stream"
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{%title%}</title>
<link rel="stylesheet" href="/palette.css">
<link rel="stylesheet" href="/tables.css">
<link rel="stylesheet" href="/flame.css">
<script src="/numbers.js"></script>
<script src="/flame.js"></script>
<script src="/perfetto.js"></script>
<script src="/timeline.js"></script>
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
        """The app for ``sets``.

        Args:
            host: address it will be bound to. token: token that every request must contain, None for none; see
                `protect`.
            theme: light, dark or auto. options: how sets are read.
            judging: options of the statistics. force: compare even if the preflight refuses.
        """
        self.sets = sets
        self.loader = Loader(sets, options)
        self.comparisons = Comparisons(self.loader, judging, force)
        self.step_inspector = StepInspector(self.loader.options.step_marker)
        self.app = Dash(
            __name__,
            use_pages=False,
            suppress_callback_exceptions=True,
            serve_locally=True,
            title="tracediff",
            update_title="",
            index_string=INDEX,
            add_log_handler=False,
            on_error=show,
        )
        self.app.layout = layout.shell(theme)
        Callbacks(self.comparisons, self.step_inspector).register(self.app)
        self.app.server.add_url_rule("/upload", "upload", self.store_dropped, methods=["POST"])
        self.app.server.add_url_rule("/merged-step", "merged-step", self.send_merged_step)
        self._serve("palette.css", palettes(), "text/css")
        for style in ("tables.css", "flame.css"):
            self._serve(style, resource(style), "text/css")
        for script in ("numbers.js", "flame.js", "perfetto.js", "timeline.js"):
            self._serve(script, resource(script), "text/javascript")
        protect(self.app, host, token)

    def _serve(self, name: str, text: str, mimetype: str) -> None:
        """Serve ``text``, which the report has too, under ``name``."""
        self.app.server.add_url_rule(f"/{name}", name, lambda: flask.Response(text, mimetype=mimetype))

    def close(self) -> None:
        """Stop reading, and remove dropped files."""
        self.loader.close()
        self.step_inspector.close()
        self.sets.uploads.close()

    def send_merged_step(self) -> flask.Response:
        """The shown step of both sides as one trace, for the view in the query."""
        context = self.comparisons.context(view_of(flask.request.query_string.decode("ascii", "replace")), None)
        if context is None:
            raise TracediffError("dashboard", "no comparison is loaded", "open the timeline again")
        steps = [self.step_inspector.step(side, None) for side in context.shown_steps]
        return flask.Response(merged_step(context.whole, steps), mimetype="application/gzip")

    def store_dropped(self) -> flask.Response:
        """Store the dropped file that is the content of a request; returns the name of its set."""
        request = flask.request
        if request.mimetype != UPLOAD_TYPE or request.content_length is None:  # other sites may send other types
            raise BadRequest(f"The content type is not {UPLOAD_TYPE}, or there is no content length.")
        request.max_content_length = request.content_length  # `Uploads.add` has its own maximum
        name = self.sets.uploads.add(request.args.get("name", ""), request.stream, request.content_length)
        return flask.Response(name, mimetype="text/plain")
