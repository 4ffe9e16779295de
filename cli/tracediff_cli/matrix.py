"""``tracediff matrix CONTROL SET…``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracediff_cli.options.groups import SETS, GroupedCommand, SetInput, document, option
from tracediff_cli.options.judging import judging_options
from tracediff_cli.options.loading import LoadArguments, load_options

if TYPE_CHECKING:
    from tracediff.diff.verdict import Judging


@click.command(cls=GroupedCommand)
@click.argument("control", metavar="CONTROL", type=SetInput())
@click.argument("others", metavar="SET...", nargs=-1, required=True, type=SetInput())
@load_options(table_help='Add this table to the JSON, such as launches (repeatable; "all" for every table).')
@judging_options
@option("--pairwise", group=SETS, is_flag=True, help="Compare each pair of sets.")
@document("json", "the matrix as JSON")
@document("markdown", "the table as Markdown")
def matrix(
    control: str,
    others: tuple[str, ...],
    loading: LoadArguments,
    judging: Judging,
    force: bool,
    pairwise: bool,
    json_file: str | None,
    markdown_file: str | None,
) -> int:
    """Compare many sets with one control: one row per set, p-values corrected for multiple testing (Holm).

    --rank, --step and --skip-first apply to every set; --label is given once per set, in order.

    \b
    Examples:
      tracediff matrix out/eager out/compile out/compile+amp
      tracediff matrix runs/a runs/b runs/c --pairwise --markdown table.md
    """

    from tracediff.explain.matrix import against_control, every_pair
    from tracediff.report import matrix as report
    from tracediff.write import write_text

    sets = loading.load([control, *others])
    cells = every_pair(sets, judging, force) if pairwise else against_control(sets[0], sets[1:], judging, force)
    if json_file:
        from tracediff.report.matrix_json import to_json

        write_text(json_file, to_json(cells))
    if markdown_file:
        write_text(markdown_file, report.to_markdown(cells))
    if "-" not in (json_file, markdown_file):
        from tracediff.report.table_terminal import print_screen, screen_console

        print_screen(screen_console(), report.table(cells))
    return 3 if any(cell.comparison.was_refused for cell in cells) else 0
