"""``tracediff explain CONTROL TEST NAME``."""

from __future__ import annotations

import click

from tracediff_cli.options.groups import GroupedCommand, WholeNumber, option, two_sets
from tracediff_cli.options.judging import PairOptions, pair_options


@click.command(cls=GroupedCommand)
@two_sets
@click.argument("name", metavar="NAME")
@option(
    "--events",
    is_flag=True,
    help="List the longest events of that name instead, with file, time and stream or thread; nothing is compared.",
)
@option("--top", type=WholeNumber(0), default=10, show_default=True, metavar="N", help="Show the N largest.")
@pair_options(table_help=None)
def explain(
    pair: PairOptions,
    name: str,
    events: bool,
    top: int,
) -> int:
    """Show how and why the work of a kernel or operator was matched, or its events.

    NAME is the name of a kernel or an operator, a part of it, or a family (gemm kernels).

    \b
    Examples:
      tracediff explain old/ new/ layer_norm
      tracediff explain old/ new/ cudaStreamSynchronize --events
    """
    if events:
        from tracediff_cli.event_list import list_events

        list_events((pair.control, pair.test), name, top)
        return 0
    from tracediff.report.explain import explain as explained

    comparison = pair.compared()
    click.echo(explained(comparison, name, top), nl=False)
    return 3 if comparison.was_refused else 0
