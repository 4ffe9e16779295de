"""``tracediff open FILE``."""

import hmac
import html
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import BinaryIO

import click

from tracediff.errors import TracediffError
from tracediff.ingest.files.source import open_file
from tracediff.process.temporary import temporary_folder
from tracediff_cli.options.groups import WholeNumber, browser_option, grouped_command, option


@grouped_command
@click.argument("file", metavar="FILE")
@option(
    "--port",
    type=WholeNumber(1),
    help="Serve at this port [default: 9001, the only one that Perfetto reads].",
)
@browser_option(default=True)
def open(file: str, port: int | None, browser: bool) -> int:  # the command's name
    """Open a trace in Perfetto (ui.perfetto.dev).

    The browser loads Perfetto's page from the network. The file goes from this machine to the browser on it, and
    nowhere else: it is served on the loopback interface, once, at an address that contains a random token.

    \b
    Examples:
      tracediff open run1/rank0.pt.trace.json.gz
      tracediff export before/ after/ --perfetto both.json.gz && tracediff open both.json.gz
    """

    with FileServer(file, port or PORT) as server:
        click.echo(f"{server.url}\nThe file is served until the page has read it; Ctrl-C ends this.")
        with page_that_opens(server.url) if browser else nullcontext() as page:
            if page:
                import webbrowser

                webbrowser.open(page)
            while not server.served:
                server.handle_request()
    return 0


HOST, PORT = "127.0.0.1", 9001
"""The only address on this machine from which Perfetto's page may fetch."""
VIEWER = "https://ui.perfetto.dev"
ESCAPED = re.compile(r"[^A-Za-z0-9._-]")
TIMEOUT_S = 1.0
"""How long a request is waited for at a time, so that an interrupt ends the wait."""


class FileServer(HTTPServer):
    """A server of one file, at a path that nobody guesses.

    Attributes:
        path: a random token, and the file's name for the viewer's title, in letters that no address has to escape.
        served: how often the whole file was sent.
    """

    def __init__(self, path: str, port: int) -> None:
        """Open the file and the port.

        Raises:
            TracediffError: the file cannot be read, or another program uses the port.
        """
        self.file: BinaryIO = open_file(path)
        self.path = f"/{secrets.token_urlsafe(24)}/{ESCAPED.sub('_', os.path.basename(path))}"
        self.size = os.fstat(self.file.fileno()).st_size
        self.served = 0
        self.timeout = TIMEOUT_S
        try:
            super().__init__((HOST, port), _FileHandler)
        except OSError as error:
            self.file.close()
            remedy = "end the program that uses it, such as another tracediff open"
            raise TracediffError(f"port {port}", (error.strerror or str(error)).lower(), remedy) from None

    @property
    def url(self) -> str:
        """The address at which Perfetto's page opens the file."""
        return f"{VIEWER}/#!/?url=http://{HOST}:{self.server_port}{self.path}"

    def server_close(self) -> None:
        """Close the file and the port."""
        self.file.close()
        super().server_close()


class _FileHandler(BaseHTTPRequestHandler):
    """Answers requests for the one file, and only those of the viewer's page."""

    server: FileServer
    timeout = 10.0

    def do_GET(self) -> None:
        """Send the file."""
        if self._head():
            self.server.file.seek(0)
            try:
                shutil.copyfileobj(self.server.file, self.wfile)
            except OSError:  # the page was closed
                return
            self.server.served += 1

    def do_HEAD(self) -> None:
        """Send the size."""
        self._head()

    def do_OPTIONS(self) -> None:
        """Allow the viewer's page to fetch."""
        self._answer(HTTPStatus.NO_CONTENT, 0, {"Access-Control-Allow-Methods": "GET, HEAD"})

    def _head(self) -> bool:
        host = self.headers.get("Host", "")
        is_known = hmac.compare_digest(self.path.encode(errors="replace"), self.server.path.encode())
        is_ours = is_known and host == f"{HOST}:{self.server.server_port}"
        self._answer(HTTPStatus.OK if is_ours else HTTPStatus.NOT_FOUND, self.server.size if is_ours else 0)
        return is_ours

    def _answer(self, status: HTTPStatus, size: int, further: dict[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size),
            "Access-Control-Allow-Origin": VIEWER,
            "Access-Control-Allow-Private-Network": "true",
            "Cache-Control": "no-store",
        }
        for name, value in (headers | (further or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # http.server's name
        """Write no log."""


@contextmanager
def page_that_opens(address: str) -> Iterator[str]:
    """The URL of a private file that leads to ``address``: other users see the command that starts a browser."""
    with temporary_folder() as folder:
        page = folder / "tracediff.html"
        target = html.escape(address)
        page.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>tracediff</title>'
            f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">Open</a>\n'
        )
        yield page.as_uri()
