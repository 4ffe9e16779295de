"""``tracediff snapshot SET``."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.argument("where", metavar="SET")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where to write it, such as base.tdprof.gz (- is standard output).",
)
@click.option("--label", metavar="NAME", help="Name of the set in reports [default: the last part of its path].")
@click.option(
    "--rank", "ranks", multiple=True, type=click.IntRange(0), metavar="N", help="Only this rank (may be repeated)."
)
@click.option("--step-marker", metavar="REGEX", help="Annotations that match are the steps, instead of ProfilerStep#N.")
@click.option("--families", metavar="FILE", help="TOML file of your own rules that tell what kind of work a name is.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="With this further table, such as launches (may be repeated; all for every one).",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Read files in N processes [default: the cores, for large files].",
)
def snapshot(
    where: str,
    output: str,
    label: str | None,
    ranks: tuple[int, ...],
    step_marker: str | None,
    families: str | None,
    tables: tuple[str, ...],
    jobs: int | None,
) -> int:
    """Write a compact baseline of a set.

    It holds what a comparison reads, all steps of it, in some KB; give it wherever a set of traces is taken.

    \b
    Examples:
      tracediff snapshot traces/ -o base.tdprof.gz
      tracediff compare base.tdprof.gz traces-of-today/
    """
    from tracediff.aggregate.snapshot import write_snapshot
    from tracediff.engine import load_sets
    from tracediff.profile.kernels.families import DEFAULT, read_rules
    from tracediff.profile.tables import table_names
    from tracediff_cli.sets import progress

    rules = read_rules(families) if families is not None else DEFAULT
    options: dict[str, Any] = {
        "step_marker": step_marker,
        "jobs": jobs,
        "families": rules,
        "tables": table_names(tables),
    }
    with progress() as tell:
        (traces,) = load_sets([where], labels=[label], ranks=[frozenset(ranks) or None], progress=tell, **options)
    size = write_snapshot(traces, output)
    if output != "-":
        files = len(traces.profiles)
        click.echo(f"wrote {output}: {files} file{'s' if files > 1 else ''} in {max(size >> 10, 1)} KB")
    return 0
