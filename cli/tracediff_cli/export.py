"""``tracediff export CONTROL TEST``."""

import os

import click

from tracediff_cli.options.groups import (
    OutputFile,
    OutputFolder,
    chart_folder,
    grouped_command,
    option,
    two_sets,
)
from tracediff_cli.options.judging import PairOptions, pair_options

DARK = "dark"
"""A theme among the formats."""


@grouped_command
@two_sets
@pair_options(table_help='Add this table to --csv, such as launches (repeatable; "all" for every table).')
@option(
    "--csv",
    "csv_folder",
    type=OutputFolder(),
    help="Write CSV files: states, groups and their members, call tree, operators, steps, health.",
)
@option(
    "--folded",
    "folded_file",
    type=OutputFile(),
    help="Write the call stacks of both sides as folded stacks for flame-graph tools (- is standard output).",
)
@option(
    "--perfetto",
    "perfetto_file",
    type=OutputFile(),
    help="Write one step per side as a merged trace for ui.perfetto.dev or chrome://tracing (.gz is compressed).",
)
@chart_folder
@option(
    "--images",
    multiple=True,
    type=click.Choice(["png", "svg", "pdf", "fragment", DARK]),
    help="Also write the charts as images, or as HTML fragments to embed in a page; dark draws them in the dark theme "
    "(repeatable).",
)
def export(
    pair: PairOptions,
    csv_folder: str | None,
    folded_file: str | None,
    perfetto_file: str | None,
    chart_folder: str | None,
    images: tuple[str, ...],
) -> int:
    """Write a comparison's tables, charts and a merged trace to files.

    \b
    Examples:
      tracediff export eager/ compiled/ --csv tables/
      tracediff export eager/ compiled/ --folded stacks.txt
      tracediff export eager/ compiled/ --perfetto both.json.gz
      tracediff export eager/ compiled/ --charts charts/ --images svg
    """
    if csv_folder is folded_file is perfetto_file is chart_folder is None:
        raise click.UsageError("nothing to write: add --csv DIR, --folded FILE, --perfetto FILE or --charts DIR")
    if pair.loading.tables and csv_folder is None:
        raise click.UsageError("--table needs --csv DIR")
    if images and chart_folder is None:
        raise click.UsageError("--images needs --charts DIR")
    formats, theme = [image for image in images if image != DARK], DARK if DARK in images else "light"
    from tracediff.report.rows import to_csv, to_folded
    from tracediff.write import make_folder, write_text

    if formats:
        from tracediff.report.charts_files import check_formats

        check_formats(formats)
    comparison = pair.compared(timelines=bool(perfetto_file or chart_folder))
    if folded_file is not None:
        write_text(folded_file, to_folded(comparison))
    if perfetto_file is not None:
        from tracediff.report.to_perfetto import to_perfetto

        merged = to_perfetto(comparison)
        merged.write(perfetto_file)
        if perfetto_file != "-":
            click.echo(f"wrote {merged.summary} to {perfetto_file}")
    if csv_folder is not None:
        make_folder(csv_folder)
        tables = to_csv(comparison)
        for name, text in tables.items():
            write_text(os.path.join(csv_folder, name), text)
        click.echo(f"wrote {len(tables)} tables to {csv_folder}")
    if chart_folder is not None:
        from tracediff.report.charts_files import write_charts

        written = write_charts(comparison, chart_folder, formats, theme)
        click.echo(f"wrote {len(written)} chart files to {chart_folder}")
    return 3 if comparison.was_refused else 0
