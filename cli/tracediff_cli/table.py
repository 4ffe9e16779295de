"""``tracediff table OUT``: the former name of ``tracediff collect --show OUT``."""

from __future__ import annotations

from pathlib import Path

import click

from tracediff_cli.show_collection import show_collection


@click.command(hidden=True)
@click.argument("out", metavar="OUT")
@click.option("--json", "json_file", metavar="FILE", help="Write the table as JSON (- is standard output).")
@click.option("--markdown", "markdown_file", metavar="FILE", help="Write the table as Markdown (- is standard output).")
def table(out: str, json_file: str | None, markdown_file: str | None) -> int:
    """Show the table of a collection: now `tracediff collect --show OUT`."""
    click.echo("tracediff: `tracediff table` is now called `tracediff collect --show`", err=True)
    return show_collection(Path(out), json_file, markdown_file)
