"""Checks of every request (host, site, token, and what a browser may send to the callbacks), security headers of every
response, and what a user sees of an error: one line.
"""

import hmac
import ipaddress
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import flask
import msgspec
from dash import Dash, set_props
from dash.exceptions import DependencyException, InvalidResourceError
from msgspec import Struct, field
from werkzeug.exceptions import BadRequest, HTTPException, RequestEntityTooLarge

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff_dashboards.pages import components
from tracediff_dashboards.state.controls import TYPES

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
    server.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
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
        refusal = guard.check() if guard is not None else None
        if refusal is None and request.path == PATH and request.method == "POST":
            check_callback(app)
        return refusal

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
    """The headers of every response: only content of this server is allowed, and pages may not be shown in frames.

    Args:
        script_hashes: hashes of the inline scripts that the page needs.
    """
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; script-src 'self' {' '.join(script_hashes)}; "
            "style-src 'self' 'unsafe-inline'; "  # plotly and the grid need inline styles
            "img-src 'self' data: blob:; "
            "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin-allow-popups",  # to hand a trace to Perfetto's page
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _refused(status: int, sentence: str) -> flask.Response:
    return flask.Response(f"{sentence}\n", status, mimetype="text/plain")


COOKIE = "tracediff-session"
"""Prefix of the cookie's name; the port follows, because cookies are shared by all ports of a host."""


class Guard:
    """Checks the token of every request.

    The right token is never delayed or refused, so that wrong ones cannot lock its owner out.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._session = secrets.token_urlsafe(32)  # the cookie's value, of this run only
        self._wrong: deque[float] = deque(maxlen=bounds.WRONG_TOKENS)
        self._places = threading.BoundedSemaphore(bounds.TOKENS_DELAYED)

    def check(self) -> flask.Response | None:
        """None if the request may be served; else the redirect that exchanges the token in its address for a cookie, or
        the refusal.
        """
        request = flask.request
        in_address = request.args.get("token")
        has_session = _same(request.cookies.get(_cookie(), ""), self._session)
        if in_address is not None and (has_session or _same(in_address, self._token)):
            return self._without_token()
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if has_session or _same(bearer, self._token):
            return None
        if (in_address or bearer) and self._are_many():
            return _refused(429, "Too many wrong tokens: open the address that the dashboard printed when it started.")
        return _refused(401, "This dashboard requires a token: open the address that it printed when it started.")

    def _without_token(self) -> flask.Response:
        """A redirect to the same address without the token, so that neither the history nor copied links contain it."""
        request = flask.request
        rest = urlencode({key: request.args.getlist(key) for key in request.args if key != "token"}, doseq=True)
        path = quote(request.path.lstrip("/\\"))  # a path that starts with two slashes is a URL of another site
        response = flask.make_response(flask.redirect(f"/{path}{'?' if rest else ''}{rest}", 303))
        response.set_cookie(_cookie(), self._session, httponly=True, samesite="Strict")
        return response

    def _are_many(self) -> bool:
        """Count a wrong token. After many, wait, so that a client that tries one after the other is slowed down."""
        now = time.monotonic()
        self._wrong.append(now)
        if len(self._wrong) < bounds.WRONG_TOKENS or now - self._wrong[0] > bounds.TOKEN_S:
            return False
        if self._places.acquire(blocking=False):
            try:
                time.sleep(bounds.TOKEN_DELAY_S)
            finally:
                self._places.release()
        return True


def _cookie() -> str:
    port = flask.request.host.rpartition(":")[2]
    return f"{COOKIE}-{port if port.isascii() and port.isdigit() else 80}"


def _same(candidate: str, secret: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(candidate.encode("utf-8", "replace"), secret.encode())


log = logging.getLogger("tracediff_dashboards")


def explained(error: Exception) -> TracediffError:
    """``error`` if a user can act on it. Any other is a fault of the dashboard: it is logged, and the line says so."""
    if isinstance(error, TracediffError):
        return error
    if isinstance(error, MemoryError):
        return TracediffError("dashboard", "not enough memory", "close other tabs, or compare fewer ranks")
    fault = TracediffError("dashboard", f"failed in this request ({type(error).__name__})", "report this as a bug")
    log.error("%s", fault)
    log.debug("traceback:", exc_info=error)
    return fault


def show(error: Exception) -> None:
    """Show the error of a callback at the top of the page; its other outputs stay as they are."""
    set_props("notice", {"children": components.error_alert(explained(error))})


PATH = "/_dash-update-component"
MOST_BYTES = 1 << 20
"""Maximum size of a request in bytes."""
JSON = "application/json"

Number = float | None


class Mark(Struct):
    """A clicked mark of a chart."""

    id: str | int | None = None


class Click(Struct):
    """A click on a chart."""

    points: list[Mark] = []


class Relayout(Struct):
    """The new range of the time axes of a chart."""

    low: Number = field(default=None, name="xaxis.range[0]")
    high: Number = field(default=None, name="xaxis.range[1]")
    both: tuple[float, float] | None = field(default=None, name="xaxis.range")
    low2: Number = field(default=None, name="xaxis2.range[0]")
    high2: Number = field(default=None, name="xaxis2.range[1]")
    both2: tuple[float, float] | None = field(default=None, name="xaxis2.range")


VALUES: dict[str, Any] = {
    **TYPES,
    **dict.fromkeys(("url.pathname", "url.search", "theme.data", "spans-of.data"), str | None),
    **dict.fromkeys(("again.n_clicks", "cancel.n_clicks", "poll.n_intervals"), int | None),
    "ready.data": int,
    "shown.data": list[str | int | None] | None,
    "chart-timeline.relayoutData": Relayout | None,
    "chart-timeline.clickData": Click | None,
}
"""Property of a component → the type of its value."""


class Property(Struct):
    """A property of a component."""

    id: str
    property: str


class Value(Property):
    """A property of a component and its value, absent where the component is."""

    value: msgspec.Raw = msgspec.Raw(b"null")


class Body(Struct):
    """The request for one callback."""

    output: str
    outputs: list[Property] | Property = []
    inputs: list[Value] = []
    state: list[Value] = []
    changedPropIds: list[str] = []


def check_callback(app: Dash) -> None:
    """Check the request of a callback.

    Raises:
        BadRequest: it is too large, not JSON, for an unknown callback, or its values have the wrong types.
    """
    if flask.request.mimetype != JSON:  # other sites may send other types
        raise BadRequest(f"The content type is not {JSON}.")
    try:
        body = msgspec.json.decode(flask.request.get_data(), type=Body)
        _check_properties(app, body)
        for value in (*body.inputs, *body.state):
            msgspec.json.decode(value.value, type=VALUES[_name(value)])
        flask.request.get_json()  # as Dash will
    except RequestEntityTooLarge:
        raise BadRequest(f"The request is larger than {MOST_BYTES >> 20} MB.") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(f"Not a request of this dashboard's pages: {error}") from None


def _check_properties(app: Dash, body: Body) -> None:
    """Check that the callback exists, and that the properties are its own, in its order.

    Raises:
        ValueError: they are not.
    """
    callback = app.callback_map.get(body.output)
    if callback is None or "callback" not in callback:  # callbacks without a function run in the browser
        raise ValueError("unknown callback")
    if isinstance(body.outputs, Property):
        outputs = _name(body.outputs)
    else:
        outputs = f"..{'...'.join(map(_name, body.outputs))}.."
    if outputs != (".." * 2 if callback["no_output"] else body.output):
        raise ValueError("wrong outputs")
    for values, expected in ((body.inputs, callback["inputs"]), (body.state, callback["state"])):
        if [_name(value) for value in values] != [f"{each['id']}.{each['property']}" for each in expected]:
            raise ValueError("wrong inputs")
    if not {*body.changedPropIds} <= {_name(value) for value in body.inputs}:
        raise ValueError("unknown change")


def _name(item: Property) -> str:
    return f"{item.id}.{item.property}"
