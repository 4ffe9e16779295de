"""The HTTP server of the app."""

from __future__ import annotations

import logging

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from tracediff.errors import TracediffError
from tracediff_dashboards.app import Dashboard

IDLE_SECONDS = 60
"""Time in seconds after which an idle connection is closed."""


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS


def bound(dashboard: Dashboard, host: str, port: int) -> BaseWSGIServer:
    """A server that is bound to the address; run it with ``serve_forever``. Port 0 selects a free one.

    Raises:
        TracediffError: the address is in use, or does not belong to this machine.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # its log of requests would contain the token
    try:
        return make_server(host, port, dashboard.app.server, threaded=True, request_handler=_Handler)
    except (OSError, SystemExit) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "the port is in use"
        raise TracediffError(
            f"{host}:{port}", f"cannot serve on this address ({reason})", "choose another --port or --host"
        ) from None


def address(server: BaseWSGIServer, host: str, token: str | None) -> str:
    """The URL of the app, including the token."""
    url_host = f"[{host}]" if ":" in host else host
    return f"http://{url_host}:{server.server_port}/{f'?token={token}' if token else ''}"
