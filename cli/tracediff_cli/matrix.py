"""``tracediff matrix CONTROL SET…``."""

from __future__ import annotations

import click

from tracediff_cli.sets import percent, progress


@click.command()
@click.argument("control", metavar="CONTROL")
@click.argument("others", metavar="SET...", nargs=-1, required=True)
@click.option("--pairwise", is_flag=True, help="Every set against every other.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Name the sets in order.")
@click.option(
    "--equivalence-band",
    metavar="PERCENT",
    type=percent,
    default="5%",
    show_default=True,
    help="Changes within this are none.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Read files in N processes [default: the cores, for large files].",
)
@click.option("--force", is_flag=True, help="Compare even what the preflight refuses.")
@click.option("--json", "json_file", metavar="FILE", help="Write the matrix as JSON (- is standard output).")
@click.option("--markdown", "markdown_file", metavar="FILE", help="Write the table as Markdown (- is standard output).")
def matrix(
    control: str,
    others: tuple[str, ...],
    pairwise: bool,
    labels: tuple[str, ...],
    equivalence_band: float,
    jobs: int | None,
    force: bool,
    json_file: str | None,
    markdown_file: str | None,
) -> int:
    """Compare many sets with one control: a row each, tests corrected for being many (Holm).

    \b
    Examples:
      tracediff matrix out/eager out/compile out/compile+amp
      tracediff matrix runs/a runs/b runs/c --pairwise --markdown table.md
    """
    from rich.console import Console

    from tracediff.diff.matrix import against_control, every_pair
    from tracediff.diff.verdict import Judging
    from tracediff.engine import load_sets
    from tracediff.report import matrix as report
    from tracediff.write import write_text

    wheres = [control, *others]
    with progress() as tell:
        sets = load_sets(wheres, labels=[*labels, *[None] * len(wheres)][: len(wheres)], jobs=jobs, progress=tell)
    judging = Judging(equivalence_band=equivalence_band)
    cells = every_pair(sets, judging, force) if pairwise else against_control(sets[0], sets[1:], judging, force)
    if json_file:
        from tracediff.report.matrix_json import to_json

        write_text(json_file, to_json(cells))
    if markdown_file:
        write_text(markdown_file, report.to_markdown(cells))
    if "-" not in (json_file, markdown_file):
        Console().print(report.table(cells))
    return 3 if any(cell.comparison.was_refused for cell in cells) else 0
