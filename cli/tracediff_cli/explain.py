"""``tracediff explain CONTROL TEST NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracediff_cli.options.groups import GroupedCommand, Whole, option, two_sets
from tracediff_cli.options.judging import judging_options
from tracediff_cli.options.loading import SIDES, LoadArguments, load_options

if TYPE_CHECKING:
    from tracediff.diff.verdict import Judging


@click.command(cls=GroupedCommand)
@two_sets
@click.argument("name", metavar="NAME")
@option(
    "--events",
    is_flag=True,
    help="List the longest events of that name instead, with file, time and stream or thread; nothing is compared.",
)
@option("--top", type=Whole(0), default=10, show_default=True, metavar="N", help="Show the N largest.")
@load_options(sides=SIDES, table_help=None)
@judging_options
def explain(
    control: str,
    test: str,
    name: str,
    events: bool,
    top: int,
    loading: LoadArguments,
    judging: Judging,
    force: bool,
) -> int:
    """Show how and why the work of a kernel or operator was matched, or its events.

    NAME is the name of a kernel or an operator, or a part of it.

    \b
    Examples:
      tracediff explain old/ new/ layer_norm
      tracediff explain old/ new/ cudaStreamSynchronize --events
    """
    if events:
        from tracediff_cli.event_list import list_events

        list_events((control, test), name, top)
        return 0
    from tracediff.explain.compare import compare_sets
    from tracediff.report.explain import explain as explained

    before, after = loading.load([control, test])
    comparison = compare_sets(before, after, force, judging)
    click.echo(explained(comparison, name, top), nl=False)
    return 3 if comparison.was_refused else 0
