"""The HTTP server of the app: bounded in threads, and in the time that a client may take."""

from __future__ import annotations

import errno
import io
import logging
import select
import socket
import sys
import threading
import time
from typing import Any

from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer, WSGIRequestHandler

from tracediff import bounds
from tracediff.errors import TracediffError
from tracediff_dashboards.app import Dashboard
from tracediff_dashboards.reading.sets import MOST_BYTES
from tracediff_dashboards.security import security_headers

CONTENT_SECONDS, BYTES_PER_SECOND = 10.0, 32 << 10
"""Maximum time until its content, or the answer, has been received: a fixed part, and the rate of at least this."""
MOST_AT_ONCE = 1 << 16
"""Maximum number of bytes that a read returns."""


class _Received(io.RawIOBase):
    """The bytes from a client, which must arrive before ``deadline``, a time of `time.monotonic`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = time.monotonic() + bounds.HEAD_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive some bytes.

        Raises:
            TimeoutError: the deadline has passed.
        """
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


class _Buffered(io.BufferedReader):
    """What was received; werkzeug asks for 10 MB of a content that it discards."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read1(MOST_AT_ONCE if size is None or size < 0 else min(size, MOST_AT_ONCE))


class _Sent(io.BufferedIOBase):
    """The answer, which a client must take in time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline = 0.0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Send bytes.

        Raises:
            TimeoutError: the client takes them too slowly.
        """
        now = time.monotonic()
        self._deadline = (self._deadline or now + CONTENT_SECONDS) + len(data) / BYTES_PER_SECOND
        self._connection.settimeout(max(self._deadline - now, 0.01))
        self._connection.sendall(data)
        return len(data)


class _Handler(WSGIRequestHandler):
    server: _Server

    def setup(self) -> None:
        """Run at the start of the thread of a connection."""
        self.connection = self.request
        self._received = _Received(self.connection)
        self.rfile, self.wfile = _Buffered(self._received), _Sent(self.connection)
        self.server.slow[self.connection] = time.monotonic()

    def finish(self) -> None:
        self.server.slow.pop(self.connection, None)
        super().finish()

    def parse_request(self) -> bool:
        """Whether there is a request for the app; HTTP/0.9, addresses that are none and chunked content are refused."""
        if not super().parse_request():
            return False
        self.server.slow.pop(self.connection, None)
        try:
            self.make_environ()
            length = int(self.headers.get("Content-Length", 0))
        except ValueError:
            length = -1
        if self.request_version == "HTTP/0.9" or length < 0 or "Transfer-Encoding" in self.headers:
            self.send_error(400)
            return False
        self._received.deadline = time.monotonic() + CONTENT_SECONDS + min(length, MOST_BYTES) / BYTES_PER_SECOND
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002  # http.server's signature
        """Answer what is not HTTP, which does not reach the app."""
        text = b"This is not a request of a browser.\n"  # ``message`` repeats what was sent, which may be a token
        self.request_version = "HTTP/1.0"  # an answer to HTTP/0.9 would have no headers
        self.send_response(code)
        headers = {"Content-Type": "text/plain", "Content-Length": str(len(text)), "Connection": "close"}
        for name, value in (headers | security_headers()).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def version_string(self) -> str:
        """The header Server, without versions."""
        return "tracediff"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log no addresses of requests: they may contain the token."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nor that a client is slow or gone."""


class _Server(ThreadedWSGIServer):
    """A thread for each connection, of which there are at most CONNECTIONS.

    Attributes:
        slow: connections whose request has not been received, and the time since when they are served.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.server_port = self.port  # of the socket that it was given
        self.slow: dict[socket.socket, float] = {}
        self._free = threading.BoundedSemaphore(bounds.CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, as soon as one is free."""
        while not self._free.acquire(timeout=bounds.CROWDED_HEAD_S / 5):
            self._drop_slow()
        try:
            super().process_request(request, client_address)
        except Exception:  # no thread was started; where a signal ends the process, one may have been
            self._free.release()
            raise

    def _drop_slow(self) -> None:
        """Close connections that are slow to send their request; not those whose thread is slow to read it."""
        for connection, since in list(self.slow.items()):
            if time.monotonic() - since > bounds.CROWDED_HEAD_S:
                try:
                    if not select.select([connection], [], [], 0)[0]:
                        connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end of the stream
                except (OSError, ValueError):  # it is closed already
                    continue

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Run in the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # socketserver's signature
        """Log an error outside the app in one line, unless the client is gone."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logging.getLogger("tracediff_dashboards").error("a request failed (%s)", type(error).__name__)


def bound(dashboard: Dashboard, host: str, port: int) -> BaseWSGIServer:
    """A server that is bound to the address; run it with ``serve_forever``. Port 0 selects a free one.

    Raises:
        TracediffError: the address is unknown or not one of this machine, or the port is in use or not allowed.
    """
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, kind)
        with listening:  # the server duplicates it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            listening.listen(_Server.request_queue_size)
            return _Server(where[0], port, dashboard.app.server, _Handler, fd=listening.fileno())
    except (OSError, UnicodeError) as error:
        raise _unbound(host, port, error) from None


def _unbound(host: str, port: int, error: OSError | UnicodeError) -> TracediffError:
    if isinstance(error, socket.gaierror | UnicodeError):
        return TracediffError("--host", f"{host[:100]!r} is not a known address", "give an address of this machine")
    if error.errno == errno.EADDRNOTAVAIL:
        return TracediffError("--host", f"{host} is not an address of this machine", "give 127.0.0.1, or leave it out")
    remedy = "choose a port above 1023" if error.errno == errno.EACCES else "choose another, or 0 for a free one"
    return TracediffError("--port", f"cannot serve on {host}:{port} ({error.strerror})", remedy)


def address(server: BaseWSGIServer, host: str, token: str | None) -> str:
    """The URL of the app, including the token."""
    url_host = f"[{host}]" if ":" in host else host
    return f"http://{url_host}:{server.server_port}/{f'?token={token}' if token else ''}"
