"""``tracediff analyze SET`` and ``tracediff snapshot SET``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracediff.errors import TracediffError
from tracediff_cli.options.groups import (
    INSTEAD,
    Documents,
    OutputFile,
    WholeNumber,
    chart_folder,
    command_line,
    documents,
    grouped_command,
    one_set,
    option,
)
from tracediff_cli.options.loading import LoadArguments, load_options

if TYPE_CHECKING:
    from tracediff.aggregate.traceset import TraceSet
    from tracediff.present.plain_text import Table


@grouped_command
@one_set
@load_options(
    table_group=INSTEAD,
    table_help='Print only this table, such as launches or copies (repeatable; "all" for every table).',
)
@option(
    "--top",
    type=WholeNumber(0),
    help="Show N rows per table [default: 10 in the summary, 15 with --table].",
)
@documents(
    html="Write the analysis as one HTML file that works offline (- is standard output).",
    json="Write the analysis as JSON (- is standard output).",
    markdown="Write the tables as Markdown (- is standard output).",
)
@option(
    "--hta",
    "hta_names",
    metavar="NAME,…",
    help='Add analyses of Holistic Trace Analysis, such as breakdowns or idle ("all" for every analysis).',
)
@chart_folder
def analyze(
    where: str,
    loading: LoadArguments,
    top: int | None,
    documents: Documents,
    hta_names: str | None,
    chart_folder: str | None,
) -> int:
    """Analyse one set of traces: step time by state, GPU time, operators, kernels, and further tables.

    \b
    Examples:
      tracediff analyze traces/
      tracediff analyze traces/ --table copies --table launches
      tracediff analyze traces/ --table all --html analysis.html --json analysis.json
    """
    from tracediff.analysis import analyze_set
    from tracediff.profile.tables import ALL, table_names
    from tracediff.report import analysis as report
    from tracediff.report.analysis_json import to_json

    names = table_names(loading.tables)
    if not names and any(documents.files.values()):
        loading = loading.replace(tables=(ALL,))
    (traces,) = loading.load([where], timelines=bool(documents.files["html"] or chart_folder))
    analysis = analyze_set(traces)
    hta_tables = _hta_tables(traces, hta_names.split(","), top) if hta_names else []
    console = documents.write(
        json=lambda: to_json(analysis),
        markdown=lambda: report.to_markdown(analysis, top=top, more=hta_tables),
        html=lambda: report.to_html(analysis, command=command_line(), more=hta_tables),
    )
    if chart_folder:
        from tracediff.charts import OF_SET
        from tracediff.report.charts_files import write_charts

        write_charts(analysis, chart_folder, names=OF_SET)
    if console:
        report.show(analysis, console, names, top, hta_tables)
    return 0


def _hta_tables(traces: TraceSet, names: list[str], top: int | None) -> list[Table]:
    """HTA's analyses ``names`` as tables; an analysis that is unavailable is a title without rows."""
    from tracediff.hta import SECTIONS, sections
    from tracediff.present.plain_text import Table
    from tracediff.report.analysis import frame_table

    tables = []
    for section in sections(traces, list(SECTIONS) if "all" in names else [name.strip() for name in names]):
        if section.unavailable:
            tables.append(Table(title=f"HTA, {section.title}: {section.unavailable}", heads=(), texts=0, rows=()))
        tables += [
            frame_table(f"HTA, {section.title}: {caption}", frame, top if top is not None else 15)
            for caption, frame in section.tables.items()
        ]
    return tables


@grouped_command
@one_set
@load_options(table_help='Include this table in the snapshot, such as launches (repeatable; "all" for every table).')
@option(
    "-o",
    "--out",
    "--output",
    "output",
    type=OutputFile(),
    required=True,
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
    from tracediff.profile.tables import ALL
    from tracediff.profile.tables.schema import OVER_RANKS

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
