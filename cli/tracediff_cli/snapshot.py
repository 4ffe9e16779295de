"""``tracediff snapshot SET``."""

from __future__ import annotations

import click

from tracediff.errors import TracediffError
from tracediff_cli.load_options import LoadArguments, load_options
from tracediff_cli.option_groups import GroupedCommand, option


@click.command(cls=GroupedCommand)
@click.argument("where", metavar="SET")
@load_options(table_help="Keep this table in the snapshot, such as launches (repeatable; all for every one).")
@option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Write it to this file, such as base.tdprof.gz (- is standard output).",
)
def snapshot(where: str, loading: LoadArguments, output: str) -> int:
    """Write a compact baseline of a set.

    It holds what a comparison reads, all steps of it, in some KB; give it wherever a set of traces is taken. --step and
    --skip-first choose the steps that are then used by default.

    \b
    Examples:
      tracediff snapshot traces/ -o base.tdprof.gz
      tracediff compare base.tdprof.gz traces-of-today/
    """
    from tracediff.aggregate.snapshot import write_snapshot
    from tracediff.profile.tables import ALL, OVER_RANKS

    for name in loading.tables:
        if name in OVER_RANKS:
            raise TracediffError(
                f"--table {name}", "compares ranks, which a snapshot cannot hold", "leave it out, and keep the traces"
            )
    (traces,) = loading.load([where])
    size = write_snapshot(traces, output)
    if output != "-":
        files = len(traces.profiles)
        lacks = f" (cannot hold {', '.join(OVER_RANKS)})" if ALL in loading.tables and len(traces.ranks) > 1 else ""
        click.echo(f"wrote {output}: {files} file{'s' if files > 1 else ''} in {max(size >> 10, 1)} KB{lacks}")
    return 0
