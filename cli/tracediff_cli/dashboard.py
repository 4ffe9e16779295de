"""``tracediff dashboard CONTROL TEST`` or ``tracediff dashboard FOLDER``."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING

import click

from tracediff.errors import TracediffError
from tracediff_cli.judging_options import judging_options
from tracediff_cli.load_options import SIDES, LoadArguments, load_options
from tracediff_cli.option_groups import GroupedCommand, option

if TYPE_CHECKING:
    from tracediff_dashboards.sets import Sets

    from tracediff.diff.verdict import Judging
    from tracediff.load_options import LoadOptions

SERVER = "Server and browser"


@click.command(cls=GroupedCommand)
@click.argument("wheres", metavar="CONTROL TEST | FOLDER", nargs=-1, required=True)
@load_options(
    sides=SIDES,
    table_help="Make this table for the findings that need it, such as rates (repeatable; all for every one).",
)
@judging_options
@option(
    "--port",
    group=SERVER,
    type=click.IntRange(0, 65535),
    default=8050,
    show_default=True,
    metavar="N",
    help="Serve on this port; 0 takes a free one.",
)
@option("--open", "opens", group=SERVER, is_flag=True, help="Open the dashboard in the browser.")
@option(
    "--host",
    group=SERVER,
    default="127.0.0.1",
    show_default=True,
    metavar="H",
    help="Serve on this address; any but this machine's own needs --token.",
)
@option("--token", group=SERVER, metavar="T", help="Require this token of every request (16 characters or more).")
@option(
    "--theme",
    group=SERVER,
    type=click.Choice(["auto", "light", "dark"]),
    default="auto",
    show_default=True,
    help="Start in this theme.",
)
def dashboard(
    wheres: tuple[str, ...],
    loading: LoadArguments,
    judging: Judging,
    force: bool,
    port: int,
    opens: bool,
    host: str,
    token: str | None,
    theme: str,
) -> int:
    """Explore a comparison in the browser.

    CONTROL and TEST are each whatever compare takes; of a FOLDER any two sets below it can be chosen. Nothing else is
    read, and only this machine can
    ask. Ctrl-C ends it.

    \b
    Examples:
      tracediff dashboard eager/ compiled/ --open
      tracediff dashboard runs/
      tracediff dashboard runs/ --host 0.0.0.0 --token "$(openssl rand -hex 16)"
    """
    try:
        from tracediff_dashboards.app import make_app
        from tracediff_dashboards.security import is_loopback
        from tracediff_dashboards.server import address, bound
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("cachetools", "dash", "dash_ag_grid", "flask", "werkzeug"):
            raise
        raise TracediffError(
            "dashboard", f"needs {error.name}, which is not installed", "pip install 'torch-tracediff[dashboard]'"
        ) from None
    if not is_loopback(host):
        if token is None:
            raise TracediffError("--host", f"{host} lets other machines in", "give a --token that they must know")
        click.echo(
            (
                f"warning: other machines can reach {host}; the connection is not encrypted, and whoever has the token "
                f"sees the traces"
            ),
            err=True,
        )
    if token is not None and (
        len(token) < 16 or not (token.isascii() and token.isprintable()) or any(c in token for c in ' ";,\\%&#+')
    ):
        raise TracediffError(
            "--token",
            "is too short, or holds characters that an address or a cookie cannot",
            "give 16 letters and digits or more",
        )
    options = _options(wheres, loading)
    sets = _sets(wheres, options)
    made = make_app(sets, host=host, token=token, theme=theme, options=options, judging=judging, force=force)
    server = bound(made, host, port)
    where = address(server, host, token)
    click.echo(f"tracediff dashboard: {where} (Ctrl-C ends it)")
    if len(made.sets.given) == 2:
        made.loader.pair(*made.sets.given)  # while the browser starts
    if opens:
        threading.Timer(0.2, webbrowser.open, [where]).start()
    for asked in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(asked, lambda number, _: sys.exit(128 + number))  # so that what it started and wrote is removed
    try:
        server.serve_forever()  # returns at Ctrl-C
    finally:
        made.close()
    click.echo("ended")
    return 0


def _options(wheres: tuple[str, ...], loading: LoadArguments) -> LoadOptions:
    """How the sets of the command line are read: both of a pair, or all of a folder.

    Raises:
        TracediffError: more than two sets, or an option that they cannot have.
    """
    if len(wheres) > 2:
        raise TracediffError(
            "dashboard", f"{len(wheres)} sets were given", "give CONTROL and TEST, or the folder that holds them all"
        )
    if len(wheres) == 1 and loading.labels:
        raise TracediffError("--label", "sets of a folder are named by their paths", "give CONTROL and TEST")
    return loading.options(len(wheres))


def _sets(wheres: tuple[str, ...], options: LoadOptions) -> Sets:
    """The sets of the command line.

    Raises:
        TracediffError: nothing there.
    """
    from tracediff_dashboards.sets import Sets

    from tracediff.ingest.discover import find_traces, labels_for

    if len(wheres) == 1:
        if not os.path.isdir(wheres[0]):
            raise TracediffError(wheres[0], "is no folder", "give CONTROL and TEST, or a folder of sets")
        return Sets(root=wheres[0], every=options.sets[0])
    for where in wheres:
        find_traces(where)
    control, test = (one.label or name for one, name in zip(options.sets, labels_for(wheres), strict=True))
    names = control, test if test != control else f"{test} (again)"
    return Sets(dict(zip(names, wheres, strict=True)), options=dict(zip(names, options.sets, strict=True)))
