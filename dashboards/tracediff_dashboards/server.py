"""Serving the app to a browser."""

from __future__ import annotations

import logging

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from tracediff.errors import TracediffError
from tracediff_dashboards.app import Dashboard

LONGEST_SILENCE = 60
"""Seconds after which a connection that says nothing is closed."""


class _Handler(WSGIRequestHandler):
    timeout = LONGEST_SILENCE


def bound(dashboard: Dashboard, host: str, port: int) -> BaseWSGIServer:
    """A server that listens and is yet to be run with ``serve_forever``; port 0 takes a free one.

    Raises:
        TracediffError: the address is not free, or not this machine's.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs addresses, and one of them holds the token
    try:
        return make_server(host, port, dashboard.app.server, threaded=True, request_handler=_Handler)
    except (OSError, SystemExit) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "the port is in use"
        raise TracediffError(
            f"{host}:{port}", f"cannot be served there ({reason})", "choose another --port or --host"
        ) from None


def address(server: BaseWSGIServer, host: str, token: str | None) -> str:
    """Where a browser finds the app."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.server_port}/{f'?token={token}' if token else ''}"
