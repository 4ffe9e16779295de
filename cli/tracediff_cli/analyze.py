"""``tracediff analyze SET``."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracediff.aggregate.traceset import TraceSet
    from tracediff.report.table import Table


@click.command()
@click.argument("where", metavar="SET")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="This table, whole instead of the summary (may be repeated; all for every one).",
)
@click.option(
    "--top", type=click.IntRange(0), metavar="N", help="Rows of each table [default: 10 of the summary, 15 of others]."
)
@click.option("--html", "html_file", metavar="FILE", help="Write a page that works offline (- is standard output).")
@click.option("--json", "json_file", metavar="FILE", help="Write the whole analysis as JSON (- is standard output).")
@click.option(
    "--markdown", "markdown_file", metavar="FILE", help="Write the tables as Markdown (- is standard output)."
)
@click.option(
    "--hta",
    "hta_names",
    metavar="A,B,…",
    help="Also analyses of Holistic Trace Analysis, such as breakdowns or idle (all for every one).",
)
@click.option(
    "--charts", "chart_folder", metavar="DIR", help="Write every chart as HTML that opens offline, and as JSON."
)
@click.option("--label", metavar="NAME", help="Name of the set in reports [default: the last part of its path].")
@click.option(
    "--rank", "ranks", multiple=True, type=click.IntRange(0), metavar="N", help="Only this rank (may be repeated)."
)
@click.option("--step", "steps", metavar="A..B", help="Only the steps numbered A to B.")
@click.option(
    "--skip-first",
    type=click.IntRange(0),
    metavar="N",
    help="Leave out the first N steps of each file [default: 1 of 3 or more].",
)
@click.option("--step-marker", metavar="REGEX", help="Annotations that match are the steps, instead of ProfilerStep#N.")
@click.option("--families", metavar="FILE", help="TOML file of your own rules that tell what kind of work a name is.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Read files in N processes [default: the cores, for large files].",
)
def analyze(
    where: str,
    tables: tuple[str, ...],
    top: int | None,
    html_file: str | None,
    json_file: str | None,
    markdown_file: str | None,
    hta_names: str | None,
    chart_folder: str | None,
    label: str | None,
    ranks: tuple[int, ...],
    steps: str | None,
    skip_first: int | None,
    step_marker: str | None,
    families: str | None,
    jobs: int | None,
) -> int:
    """Look at one set in depth: the same accounts as compare, and further tables.

    \b
    Examples:
      tracediff analyze traces/
      tracediff analyze traces/ --table copies --table launches
      tracediff analyze traces/ --table all --html analysis.html --json analysis.json
    """
    from tracediff.analysis.analyze import analyze_set
    from tracediff.engine import load_sets
    from tracediff.profile.kernels.families import DEFAULT, read_rules
    from tracediff.profile.selection import Selection
    from tracediff.profile.tables import table_names
    from tracediff.write import write_text
    from tracediff_cli.sets import progress

    names = table_names(tables)
    written = json_file or markdown_file or html_file
    selection = Selection.parse(steps) if steps is not None else Selection(skip_first)
    with progress() as tell:
        (traces,) = load_sets(
            [where],
            labels=[label],
            ranks=[frozenset(ranks) or None],
            selections=[selection],
            step_marker=step_marker,
            jobs=jobs,
            families=read_rules(families) if families is not None else DEFAULT,
            tables=table_names(["all"]) if written and not names else names,
            progress=tell,
        )
    analysis = analyze_set(traces)
    more = _of_hta(traces, hta_names.split(","), top) if hta_names else []
    if json_file:
        from tracediff.report.analysis.to_json import to_json

        write_text(json_file, to_json(analysis))
    if markdown_file:
        from tracediff.report.analysis.to_markdown import to_markdown

        write_text(markdown_file, to_markdown(analysis, top=top, more=more))
    if html_file:
        from tracediff.report.page.analysis import to_html

        write_text(html_file, to_html(analysis, command=shlex.join(["tracediff", *sys.argv[1:]]), more=more))
    if chart_folder:
        from tracediff.charts import OF_SET
        from tracediff.report.charts_files import write_charts

        write_charts(analysis, chart_folder, names=OF_SET)
    if "-" not in (json_file, markdown_file, html_file):
        from rich.console import Console

        from tracediff.report.analysis.to_terminal import show

        show(analysis, Console(), names, top, more)
    return 0


def _of_hta(traces: TraceSet, names: list[str], top: int | None) -> list[Table]:
    """HTA's analyses ``names`` as tables; what it cannot tell is a line without rows."""
    from tracediff.hta import SECTIONS, sections
    from tracediff.report.frames import frame_table
    from tracediff.report.table import Table

    out = []
    for section in sections(traces, list(SECTIONS) if "all" in names else [name.strip() for name in names]):
        if section.unavailable:
            out.append(Table(f"HTA, {section.title}: {section.unavailable}", "", heads=(), texts=0, rows=()))
        out += [
            frame_table(f"HTA, {section.title}: {caption}", frame, top if top is not None else 15)
            for caption, frame in section.tables.items()
        ]
    return out
