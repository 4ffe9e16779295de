"""``tracediff open FILE``."""

from __future__ import annotations

from contextlib import nullcontext

import click

from tracediff_cli.options.groups import GroupedCommand, Whole, option
from tracediff_cli.private_page import page_that_opens


@click.command(cls=GroupedCommand)
@click.argument("file", metavar="FILE")
@option(
    "--port", type=Whole(1), metavar="N", help="Serve at this port [default: 9001, the only one that Perfetto reads]."
)
@option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def open(file: str, port: int | None, no_browser: bool) -> int:  # the command's name
    """Open a trace in Perfetto (ui.perfetto.dev).

    The browser loads Perfetto's page from the network. The file goes from this machine to the browser on it, and
    nowhere else: it is served on the loopback interface, once, at an address that contains a random token.

    \b
    Examples:
      tracediff open run1/rank0.pt.trace.json.gz
      tracediff export before/ after/ --perfetto both.json.gz && tracediff open both.json.gz
    """
    from tracediff_cli.serve_file import PORT, serving

    with serving(file, port or PORT) as server:
        click.echo(f"{server.url}\nThe file is served until the page has read it; Ctrl-C ends this.")
        with nullcontext() if no_browser else page_that_opens(server.url) as page:
            if page:
                import webbrowser

                webbrowser.open(page)
            while not server.served:
                server.handle_request()
    return 0
