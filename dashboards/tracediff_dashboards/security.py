"""What stands before every request: the token, the address it was sent to, and headers that keep the page to itself."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Sequence
from urllib.parse import quote, urlencode, urlsplit

import flask

COOKIE = "tracediff-token"
"""With the port behind it: cookies know none, and two dashboards may run."""
LOCAL = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 200 << 20
"""Of a request: two dropped files as base64, and some room."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server bound to ``host``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def protect(server: flask.Flask, host: str, token: str | None, script_hashes: Sequence[str]) -> None:
    """Let only those requests through that may see the traces, and give every answer its headers.

    Args:
        host: what the server is bound to. On a loopback address requests must name it so (else another site's name
            could be pointed at it).
        token: what every request must know, None for none.
        script_hashes: of the inline scripts that the page needs.
    """
    server.config["MAX_CONTENT_LENGTH"] = MOST_BYTES
    names = {*LOCAL, host.strip("[]")} if is_loopback(host) else None
    policy = _policy(script_hashes)

    def before() -> flask.Response | None:
        request = flask.request
        if names is not None and _host_name(request.host) not in names:
            return _refused(403, "This dashboard answers on this machine only, under 127.0.0.1 or localhost.")
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            return _refused(403, "Requests from other sites are not answered.")
        return _asked_for(token) if token is not None else None

    def after(response: flask.Response) -> flask.Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if not flask.request.path.startswith(("/_dash-component-suites/", "/assets/")):
            response.headers["Cache-Control"] = "no-store"
        return response

    server.before_request(before)
    server.after_request(after)


def _policy(script_hashes: Sequence[str]) -> str:
    """Nothing but what this server sends; plotly and the grid need inline styles."""
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


def _asked_for(token: str) -> flask.Response | None:
    """Nothing where the request knows the token. One that brings it in its address gets a cookie instead, so that links
    do not carry it on.
    """
    request = flask.request
    given = request.args.get("token")
    if given is not None and _same(given, token):
        rest = urlencode({key: request.args.getlist(key) for key in request.args if key != "token"}, doseq=True)
        path = quote(request.path.lstrip("/\\"))  # two slashes would name another site
        response = flask.redirect(f"/{path}{'?' if rest else ''}{rest}", 303)
        response.set_cookie(_cookie(), token, httponly=True, samesite="Strict")
        return flask.make_response(response)
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if _same(request.cookies.get(_cookie(), ""), token) or _same(bearer, token):
        return None
    return _refused(401, "This dashboard wants its token: open the address that it printed when it started.")


def _cookie() -> str:
    return f"{COOKIE}-{flask.request.host.rpartition(':')[2]}"


def _same(given: str, token: str) -> bool:
    """In a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _refused(status: int, sentence: str) -> flask.Response:
    return flask.Response(f"{sentence}\n", status, mimetype="text/plain")
