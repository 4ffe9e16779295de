"""The token that every request must present: once in the address, then as a cookie; or as a bearer token."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import deque
from urllib.parse import quote, urlencode

import flask

COOKIE = "tracediff-session"
"""Prefix of the cookie's name; the port follows, because cookies are shared by all ports of a host."""
MOST_WRONG, WITHIN_SECONDS = 20, 60
"""Wrong tokens within a time in seconds, after which the answers to further wrong ones are delayed."""
DELAY_SECONDS = 1.0
MOST_DELAYED = 4
"""Maximum number of answers that are delayed at the same time, because each occupies a thread."""


class Guard:
    """Checks the token of every request.

    The right token is never delayed or refused, so that wrong ones cannot lock its owner out.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._session = secrets.token_urlsafe(32)  # the cookie's value, of this run only
        self._wrong: deque[float] = deque(maxlen=MOST_WRONG)
        self._places = threading.BoundedSemaphore(MOST_DELAYED)

    def check(self) -> flask.Response | tuple[int, str] | None:
        """None if the request may be served; else the redirect that exchanges the token in its address for a cookie, or
        the status and the sentence with which it is refused.
        """
        request = flask.request
        in_address = request.args.get("token")
        known = _same(request.cookies.get(_cookie(), ""), self._session)
        if in_address is not None and (known or _same(in_address, self._token)):
            return self._without_token()
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if known or _same(bearer, self._token):
            return None
        if (in_address or bearer) and self._are_many():
            return 429, "Too many wrong tokens: open the address that the dashboard printed when it started."
        return 401, "This dashboard requires a token: open the address that it printed when it started."

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
        if len(self._wrong) < MOST_WRONG or now - self._wrong[0] > WITHIN_SECONDS:
            return False
        if self._places.acquire(blocking=False):
            try:
                time.sleep(DELAY_SECONDS)
            finally:
                self._places.release()
        return True


def _cookie() -> str:
    port = flask.request.host.rpartition(":")[2]
    return f"{COOKIE}-{port if port.isascii() and port.isdigit() else 80}"


def _same(given: str, secret: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
