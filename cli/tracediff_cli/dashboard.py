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

if TYPE_CHECKING:
    from tracediff_dashboards.sets import Sets


@click.command()
@click.argument("wheres", metavar="CONTROL TEST | FOLDER", nargs=-1, required=True)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8050,
    show_default=True,
    metavar="N",
    help="Port to serve on; 0 takes a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="H",
    help="Address to serve on; others than this machine's own need --token.",
)
@click.option("--token", metavar="T", help="What every request must know (16 characters or more).")
@click.option(
    "--theme",
    type=click.Choice(["auto", "light", "dark"]),
    default="auto",
    show_default=True,
    help="Until the reader chooses.",
)
@click.option("--step-marker", metavar="REGEX", help="Annotations that match are the steps, instead of ProfilerStep#N.")
@click.option("--families", metavar="FILE", help="TOML file of your own rules that tell what kind of work a name is.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Read files in N processes [default: the cores, for large files].",
)
def dashboard(
    wheres: tuple[str, ...],
    port: int,
    opens: bool,
    host: str,
    token: str | None,
    theme: str,
    step_marker: str | None,
    families: str | None,
    jobs: int | None,
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
    from tracediff.profile.kernels.families import DEFAULT, read_rules

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
    options = {
        "step_marker": step_marker,
        "families": read_rules(families) if families is not None else DEFAULT,
        "jobs": jobs,
    }
    made = make_app(_sets(wheres), host=host, token=token, theme=theme, options=options)
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


def _sets(wheres: tuple[str, ...]) -> Sets:
    """The sets of the command line.

    Raises:
        TracediffError: nothing there, or more than two.
    """
    from tracediff_dashboards.sets import Sets

    from tracediff.ingest.discover import find_traces, labels_for

    if len(wheres) > 2:
        raise TracediffError(
            "dashboard", f"{len(wheres)} sets were given", "give CONTROL and TEST, or the folder that holds them all"
        )
    if len(wheres) == 1:
        if not os.path.isdir(wheres[0]):
            raise TracediffError(wheres[0], "is no folder", "give CONTROL and TEST, or a folder of sets")
        return Sets(root=wheres[0])
    for where in wheres:
        find_traces(where)
    control, test = labels_for(wheres)
    return Sets({control: wheres[0], test if test != control else f"{test} (again)": wheres[1]})
