"""``tracediff compare CONTROL TEST`` and ``tracediff matrix CONTROL SET…``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracediff_cli.options.groups import (
    INSTEAD,
    SETS,
    Documents,
    SetInput,
    WholeNumber,
    command_line,
    documents,
    grouped_command,
    option,
    two_sets,
)
from tracediff_cli.options.judging import PairOptions, judging_options, pair_options, source_options
from tracediff_cli.options.loading import LoadArguments, load_options

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison
    from tracediff.diff.verdict import Judging


VIEWS = ("family", "phase", "module", "instance", "op", "kernel", "line", "cause")
FOR_COMPARE = ("--html", "--json", "--markdown", "--images", "--source", "--commit")
"""Options that no other command takes, and those that write files; each has a value."""
SORTS = ("change", "slower", "faster", "control", "test", "count", "name")


@grouped_command
@two_sets
@option(
    "--by",
    group=INSTEAD,
    type=click.Choice(VIEWS),
    help="Print the work of the step summed by this column, and no table of changes (module: instances as Layer[*]; "
    "instance: a row for each instance of a module).",
)
@option(
    "--depth",
    type=WholeNumber(1),
    group=INSTEAD,
    help="With --by module or instance: sum modules below the N outermost.",
)
@pair_options(
    table_group=INSTEAD,
    table_help='Print only this table, such as launches or copies (repeatable; "all" for every table).',
)
@source_options
@option("--top", type=WholeNumber(0), help="Show N rows per table of changes [default: what fits].")
@option(
    "--sort",
    type=click.Choice(SORTS),
    default="change",
    show_default=True,
    help="Order of the tables of changes: by the size of the change, its direction, time, count or name.",
)
@option(
    "--device",
    type=click.Choice(["cpu", "gpu", "all"]),
    help="Show matched work (gpu; operators where there is no GPU), self time on the host (cpu), or both.",
)
@option("-v", "--verbose", is_flag=True, help="Show every caution and health note in full, and the host's operators.")
@documents(
    html="Write the report as one HTML file that works offline (- is standard output).",
    json="Write the comparison as JSON (- is standard output).",
    markdown="Write a summary as Markdown (- is standard output).",
)
@option(
    "--images",
    "image_format",
    type=click.Choice(["png", "svg"]),
    help="Write charts next to the --markdown file and link them (needs kaleido).",
)
def compare(
    pair: PairOptions,
    top: int | None,
    sort: str,
    by: str | None,
    depth: int | None,
    device: str | None,
    verbose: bool,
    documents: Documents,
    image_format: str | None,
) -> int:
    """Compare two sets of traces: did the step get faster or slower, and why?

    CONTROL and TEST are each a folder, a trace file (.json, .json.gz, .json.zst), a quoted glob, a .zip archive, the
    URL of a file, or a snapshot. Several files of the same rank are runs of the same program.

    Exit code: 0 compared, 2 error, 3 not comparable.

    \b
    Examples:
      tracediff compare eager/ compiled/
      tracediff compare eager/ compiled/ --html report.html
      tracediff compare a.json.gz b.json.gz --top 20 --device gpu
      tracediff compare runs/old runs/new --rank 0 --json diff.json --markdown diff.md
      tracediff compare job.json.gz job.json.gz --step ctrl=5 --step test=9
      tracediff compare old/ new/ --by family
      tracediff compare old/ new/ --table copies
    """
    if depth is not None and by not in ("module", "instance"):
        raise click.UsageError("--depth needs --by module or --by instance")
    if by and device:
        raise click.UsageError("--by sums the matched work: leave out --device, which shows the host's time without it")
    markdown_file = documents.files["markdown"]
    if image_format:
        if markdown_file in (None, "-"):
            raise click.UsageError("--images needs --markdown FILE: the images are written next to that file")
        from tracediff.report.charts_files import check_formats

        check_formats([image_format])
    comparison = pair.compared(timelines=bool(documents.files["html"] or image_format))
    from tracediff.diff.views import Modules

    view, modules = "module" if by == "instance" else by, Modules(depth, by == "instance")

    def json() -> str:
        from tracediff.report.to_json import to_json

        return to_json(comparison)

    def markdown() -> str:
        from tracediff.report.to_markdown import to_markdown

        images = _images(comparison, markdown_file or "", image_format) if image_format else None
        most = 10 if top is None else top
        return to_markdown(comparison, device=device, sort=sort, top=most, view=view, modules=modules, images=images)

    if console := documents.write(json=json, markdown=markdown, html=lambda: page(comparison)):
        from tracediff.report.to_terminal import Screen, show

        screen = Screen(
            device=device,
            sort=sort,
            top=top,
            view=view,
            modules=modules,
            tables=bool(pair.loading.tables),
            verbose=verbose,
        )
        show(comparison, console, screen, _command())
    return 3 if comparison.was_refused else 0


def page(comparison: Comparison) -> str:
    """The report as HTML, which names the command."""
    from tracediff.present.next_command import next_command
    from tracediff.report.page.html import to_html

    following = next_command(comparison, _command()) if "compare" in sys.argv[1:2] else None
    return to_html(comparison, command_line(), following)


def _command() -> str:
    """The command line that compared the sides, for others to follow."""
    return shlex.join(["tracediff", *_without_files(sys.argv[1:])])


def _without_files(arguments: list[str]) -> list[str]:
    """The command line without what is for this command alone."""
    remaining = []
    words = iter(arguments)
    for argument in words:
        name, equals, _ = argument.partition("=")
        if name not in FOR_COMPARE:
            remaining.append(argument)
        elif not equals:
            next(words, None)
    return remaining


def _images(comparison: Comparison, markdown_file: str, image_format: str) -> dict[str, tuple[str, str]]:
    """Write the images to a folder next to ``markdown_file``; return chart → (path relative to the file, title)."""
    from tracediff.report.charts_files import write_images
    from tracediff.report.to_markdown import IMAGES

    folder = Path(markdown_file).with_suffix("").with_name(f"{Path(markdown_file).stem}_images")
    written = write_images(comparison, folder, IMAGES, image_format) if not comparison.was_refused else {}
    return {name: (f"{folder.name}/{path.name}", title) for name, (path, title) in written.items()}


@grouped_command
@click.argument("control", metavar="CONTROL", type=SetInput())
@click.argument("others", metavar="SET...", nargs=-1, required=True, type=SetInput())
@load_options(table_help='Add this table to the JSON, such as launches (repeatable; "all" for every table).')
@judging_options
@option("--pairwise", group=SETS, is_flag=True, help="Compare each pair of sets.")
@documents(
    json="Write the matrix as JSON (- is standard output).",
    markdown="Write the table as Markdown (- is standard output).",
)
def matrix(
    control: str,
    others: tuple[str, ...],
    loading: LoadArguments,
    judging: Judging,
    force: bool,
    pairwise: bool,
    documents: Documents,
) -> int:
    """Compare many sets with one control: one row per set, p-values corrected for multiple testing (Holm).

    --rank, --step and --skip-first apply to every set; --label is given once per set, in order.

    \b
    Examples:
      tracediff matrix out/eager out/compile out/compile+amp
      tracediff matrix runs/a runs/b runs/c --pairwise --markdown table.md
    """
    from tracediff.explain.compare import against_control, every_pair
    from tracediff.report import matrix as report

    sets = loading.load([control, *others])
    cells = every_pair(sets, judging, force) if pairwise else against_control(sets[0], sets[1:], judging, force)
    if console := documents.write(json=lambda: report.to_json(cells), markdown=lambda: report.to_markdown(cells)):
        report.show(cells, console)
    return 3 if any(cell.comparison.was_refused for cell in cells) else 0
