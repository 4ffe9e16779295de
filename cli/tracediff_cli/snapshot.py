"""``tracediff snapshot SET``."""

from __future__ import annotations

import click

from tracediff.errors import TracediffError
from tracediff_cli.options.groups import GroupedCommand, OutputFile, SetInput, option
from tracediff_cli.options.loading import LoadArguments, load_options


@click.command(cls=GroupedCommand)
@click.argument("where", metavar="SET", type=SetInput())
@load_options(table_help='Include this table in the snapshot, such as launches (repeatable; "all" for every table).')
@option(
    "-o",
    "--output",
    type=OutputFile(),
    required=True,
    metavar="FILE",
    help="Write the snapshot to this file, such as base.tdprof.gz (- is standard output).",
)
def snapshot(where: str, loading: LoadArguments, output: str) -> int:
    """Write a set as one small file, to keep as a baseline.

    A snapshot contains everything that a comparison needs, for all steps, in some KB. Every command accepts it in place
    of the traces. --step and --skip-first choose the steps that are used by default.

    \b
    Examples:
      tracediff snapshot traces/ -o base.tdprof.gz
      tracediff compare base.tdprof.gz traces-today/
    """
    from tracediff.aggregate.snapshot import write_snapshot
    from tracediff.formatting import size as in_bytes
    from tracediff.profile.tables import ALL, OVER_RANKS

    for name in loading.tables:
        if name in OVER_RANKS:
            raise TracediffError(
                f"--table {name}",
                "compares ranks, which a snapshot cannot contain",
                "leave it out, and keep the traces for it",
            )
    (traces,) = loading.load([where])
    size = write_snapshot(traces, output)
    if output != "-":
        files = len(traces.profiles)
        missing = f" (without {', '.join(OVER_RANKS)})" if ALL in loading.tables and len(traces.ranks) > 1 else ""
        click.echo(f"wrote {output}: {files} file{'s' if files > 1 else ''} in {in_bytes(size)}{missing}")
    return 0
