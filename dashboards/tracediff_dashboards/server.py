"""The HTTP server of the app."""

from __future__ import annotations

import logging
import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer, WSGIRequestHandler

from tracediff.errors import TracediffError
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.security import security_headers

IDLE_SECONDS = 60
"""Time in seconds after which an idle connection is closed."""
MOST_THREADS = 32
"""Maximum number of connections that are served at the same time; others wait in the system's queue."""


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def parse_request(self) -> bool:
        """Whether there is a request for the app; HTTP/0.9 is refused."""
        if not super().parse_request():
            return False
        if self.request_version == "HTTP/0.9":
            self.send_error(400)
            return False
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002  # http.server's signature
        """Answer what is not HTTP, which does not reach the app."""
        text = f"{message or 'This is not a request of a browser.'}\n".encode("ascii", "replace")
        self.request_version = "HTTP/1.0"  # an answer to HTTP/0.9 would have no headers
        self.send_response(code)
        headers = {"Content-Type": "text/plain", "Content-Length": str(len(text)), "Connection": "close"}
        for name, value in (headers | security_headers()).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


class _Server(ThreadedWSGIServer):
    """A thread for each connection, of which there are at most MOST_THREADS."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = threading.BoundedSemaphore(MOST_THREADS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, as soon as one is free."""
        self._free.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Run in the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


def bound(dashboard: Dashboard, host: str, port: int) -> BaseWSGIServer:
    """A server that is bound to the address; run it with ``serve_forever``. Port 0 selects a free one.

    Raises:
        TracediffError: the address is in use, or does not belong to this machine.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # its log of requests would contain the token
    try:
        return _Server(host, port, dashboard.app.server, _Handler)
    except (OSError, SystemExit) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "the port is in use"
        raise TracediffError(
            f"{host}:{port}", f"cannot serve on this address ({reason})", "choose another --port or --host"
        ) from None


def address(server: BaseWSGIServer, host: str, token: str | None) -> str:
    """The URL of the app, including the token."""
    url_host = f"[{host}]" if ":" in host else host
    return f"http://{url_host}:{server.server_port}/{f'?token={token}' if token else ''}"
