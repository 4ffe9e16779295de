"""Checks of every request (host, site, token, content), and security headers of every response."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

import flask
from dash import Dash
from dash.exceptions import DependencyException, InvalidResourceError
from werkzeug.exceptions import HTTPException

from tracediff.errors import TracediffError
from tracediff_dashboards.web import callback_requests
from tracediff_dashboards.web.failures import explained
from tracediff_dashboards.web.tokens import Guard

LOCAL = ("127.0.0.1", "localhost", "::1")
OWN = ("same-origin", "none")
"""Sec-Fetch-Site of requests of the dashboard's own pages, and of addresses that the user typed or opened."""
AGAIN = (
    '<!DOCTYPE html><html lang="en"><title>tracediff</title><meta http-equiv="refresh" content="0">'
    "<p>Opening the dashboard …</p></html>"
)
"""Answer to a link on another site: the page opens itself again, because browsers keep back the cookie at first."""


def is_loopback(host: str) -> bool:
    """Whether a server bound to ``host`` is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def protect(app: Dash, host: str, token: str | None) -> None:
    """Reject requests that are not allowed or malformed, and add security headers to every response.

    Args:
        app: with all its callbacks.
        host: address that the server is bound to. On a loopback address, the Host header must name it (against DNS
            rebinding).
        token: token that every request must contain, None for none.
    """
    server: flask.Flask = app.server
    server.config["MAX_CONTENT_LENGTH"] = callback_requests.MOST_BYTES
    names = {*LOCAL, host.strip("[]")} if is_loopback(host) else None
    headers = security_headers(app.csp_hashes())
    guard = Guard(token) if token is not None else None

    def before() -> flask.Response | None:
        request = flask.request
        if names is not None and _host_name(request.host) not in names:
            return _refused(
                403, "This dashboard accepts requests from this machine only: open it under 127.0.0.1 or localhost."
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            return _refused(403, "This dashboard does not accept requests from other sites.")
        if request.headers.get("Sec-Fetch-Site", "none") not in OWN:
            if request.method == "GET" and request.headers.get("Sec-Fetch-Dest") == "document":
                return flask.Response(AGAIN, mimetype="text/html")
            return _refused(403, "This dashboard does not accept requests from other sites.")
        found = guard.check() if guard is not None else None
        if isinstance(found, tuple):
            return _refused(*found)
        if found is None and request.path == callback_requests.PATH and request.method == "POST":
            callback_requests.check(app)
        return found

    def after(response: flask.Response) -> flask.Response:
        response.headers.update(headers)
        if not flask.request.path.startswith(("/_dash-component-suites/", "/assets/")) or response.status_code >= 400:
            response.headers["Cache-Control"] = "no-store"
        return response

    def fail(error: HTTPException) -> flask.Response:
        return _refused(error.code or 500, error.description or error.name)

    def explain(error: Exception) -> flask.Response:
        return _refused(400 if isinstance(error, TracediffError) else 500, str(explained(error)))

    def not_found(_: Exception) -> flask.Response:
        return _refused(404, "This file does not exist.")

    server.before_request(before)
    server.after_request(after)
    server.register_error_handler(HTTPException, fail)
    server.register_error_handler(Exception, explain)
    server.register_error_handler(DependencyException, not_found)
    server.register_error_handler(InvalidResourceError, not_found)


def security_headers(script_hashes: Sequence[str] = ()) -> dict[str, str]:
    """The headers of every response; pages may not be shown in frames.

    Args:
        script_hashes: hashes of the inline scripts that the page needs.
    """
    return {
        "Content-Security-Policy": _policy(script_hashes),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin-allow-popups",  # to hand a trace to Perfetto's page
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _policy(script_hashes: Sequence[str]) -> str:
    """Allow only content of this server; plotly and the grid need inline styles."""
    return (
        f"default-src 'none'; script-src 'self' {' '.join(script_hashes)}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; "
        "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _refused(status: int, sentence: str) -> flask.Response:
    return flask.Response(f"{sentence}\n", status, mimetype="text/plain")
