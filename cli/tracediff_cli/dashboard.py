"""``tracediff dashboard CONTROL TEST`` and ``tracediff dashboard FOLDER``."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import threading
import webbrowser
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import click

from tracediff.errors import TracediffError
from tracediff_cli.open import page_that_opens
from tracediff_cli.options.groups import WholeNumber, browser_option, grouped_command, option
from tracediff_cli.options.judging import judging_options
from tracediff_cli.options.loading import SIDES, LoadArguments, load_options

if TYPE_CHECKING:
    from tracediff_dashboards.reading.sets import Sets

    from tracediff.diff.verdict import Judging
    from tracediff.engine import LoadOptions

SERVER = "Server and browser"
server_option = partial(option, group=SERVER)
TOKEN_VARIABLE, NO_TOKEN = "TRACEDIFF_TOKEN", "none"


@grouped_command
@click.argument("wheres", metavar="CONTROL TEST | FOLDER", nargs=-1, required=True)
@load_options(
    sides=SIDES,
    table_help='Compute this table, such as rates (repeatable; "all" for every table).',
)
@judging_options
@server_option(
    "--port",
    type=WholeNumber(0, 65535),
    default=8050,
    show_default=True,
    help="Serve on this port; 0 selects a free one.",
)
@browser_option(default=False, group=SERVER)
@server_option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Serve on this address.",
)
@server_option(
    "--token",
    metavar="TOKEN",
    envvar=TOKEN_VARIABLE,
    help="Require this token instead of a random one (16 characters or more; rather in "
    f"{TOKEN_VARIABLE}, because other users see the options of commands), or require {NO_TOKEN!r}: every user of this "
    "machine sees the dashboard.",
)
@server_option(
    "--theme",
    type=click.Choice(["auto", "light", "dark"]),
    default="auto",
    show_default=True,
    help="Use this theme until the user changes it.",
)
def dashboard(
    wheres: tuple[str, ...],
    loading: LoadArguments,
    judging: Judging,
    force: bool,
    port: int,
    browser: bool,
    host: str,
    token: str | None,
    theme: str,
) -> int:
    """Explore a comparison in the browser.

    CONTROL and TEST are as for compare. With FOLDER, choose any two sets below it in the browser. The server reads no
    other files, and accepts requests from this machine only that present the token in the printed address. Press Ctrl-C
    to stop it.

    \b
    Examples:
      tracediff dashboard eager/ compiled/ --browser
      tracediff dashboard runs/
      tracediff dashboard runs/ --host 0.0.0.0
    """
    try:
        from tracediff_dashboards.app import Dashboard
        from tracediff_dashboards.security import is_loopback
        from tracediff_dashboards.server import address, bound
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("cachetools", "dash", "dash_ag_grid", "flask", "werkzeug"):
            raise
        raise TracediffError(
            "dashboard", f"needs {error.name}, which is not installed", "pip install 'torch-tracediff[dashboard]'"
        ) from None
    required = _token(token, is_loopback(host))
    if not is_loopback(host):
        click.echo(
            (
                f"warning: other machines can reach {host}; the connection is not encrypted, and anyone with the token "
                f"can see the traces"
            ),
            err=True,
        )
    if required is None:
        click.echo("warning: without a token, every user of this machine can see the traces", err=True)
    options = _options(wheres, loading)
    sets = _sets(wheres, options)
    app = Dashboard(sets, host=host, token=required, theme=theme, options=options, judging=judging, force=force)
    server = bound(app, host, port)
    where = address(server, host, required)
    click.echo(f"tracediff dashboard: {where} (press Ctrl-C to stop)")
    if len(app.sets.named_paths) == 2:
        app.loader.pair(*app.sets.named_paths)  # read them while the browser starts
    for ending in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))  # so that processes and files are cleaned up
    with page_that_opens(where) if browser else nullcontext() as page:
        try:
            if page:
                threading.Timer(0.2, webbrowser.open, [page]).start()
            server.serve_forever()  # returns at Ctrl-C
        finally:
            app.close()
    click.echo("stopped")
    return 0


def _token(token: str | None, is_local: bool) -> str | None:
    """The token that requests must present: the given one, else a random one; None for none.

    Raises:
        TracediffError: it cannot be used, or there must be one.
    """
    if token == NO_TOKEN:
        if not is_local:
            raise TracediffError(f"--token {NO_TOKEN}", "other machines can reach this --host", "leave --token out")
        return None
    if token is None:
        return secrets.token_urlsafe(24)
    if len(token) < 16 or not (token.isascii() and token.isprintable()) or any(c in token for c in ' ";,\\%&#+'):
        raise TracediffError(
            "--token",
            "is too short, or contains characters that are not allowed in a URL",
            "give 16 or more letters and digits",
        )
    return token


def _options(wheres: tuple[str, ...], loading: LoadArguments) -> LoadOptions:
    """The options for reading the sets: one per set of a pair, or one for all sets of a folder.

    Raises:
        TracediffError: more than two sets, or an option that does not apply to them.
    """
    if len(wheres) > 2:
        raise TracediffError(
            "dashboard",
            f"{len(wheres)} sets were given, but it compares two",
            "give CONTROL and TEST, or a folder that contains all sets",
        )
    if len(wheres) == 1 and loading.of_sets["label"]:
        raise TracediffError("--label", "the sets of a folder are labelled by their paths", "give CONTROL and TEST")
    return loading.options(len(wheres))


def _sets(wheres: tuple[str, ...], options: LoadOptions) -> Sets:
    """The sets of the command line.

    Raises:
        TracediffError: no trace is found.
    """
    from tracediff_dashboards.reading.sets import Sets

    from tracediff.ingest.discover import find_traces, labels_for

    if len(wheres) == 1:
        if not os.path.isdir(wheres[0]):
            raise TracediffError(wheres[0], "not a folder", "give CONTROL and TEST, or a folder of trace sets")
        return Sets(root=wheres[0], every=options.sets[0])
    for where in wheres:
        find_traces(where)
    control, test = (
        set_options.label or name for set_options, name in zip(options.sets, labels_for(wheres), strict=True)
    )
    names = control, test if test != control else f"{test} (again)"
    return Sets(dict(zip(names, wheres, strict=True)), options=dict(zip(names, options.sets, strict=True)))
