"""``tracediff compare CONTROL TEST``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracediff_cli.sets import two_sets

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison

VIEWS = ("family", "phase", "module", "op", "kernel", "cause")
SORTS = ("change", "slower", "faster", "control", "test", "count", "name")


@click.command()
@two_sets
@click.option("--top", type=click.IntRange(0), metavar="N", help="Rows of each table of changes [default: 10 in all].")
@click.option(
    "--sort", type=click.Choice(SORTS), default="change", show_default=True, help="Order of the tables of changes."
)
@click.option("--by", type=click.Choice(VIEWS), help="Instead of the tables of changes: the work summed by this.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help="Instead: a further table, such as launches or copies (may be repeated; all for every one).",
)
@click.option(
    "--explain", "explained", metavar="NAME", help="Instead: how the work of a kernel or operator was matched, and why."
)
@click.option("--device", type=click.Choice(["cpu", "gpu", "all"]), default="all", help="Changes of which device.")
@click.option(
    "--html", "html_file", metavar="FILE", help="Write the report: one page that works offline (- is standard output)."
)
@click.option("--json", "json_file", metavar="FILE", help="Write the whole comparison as JSON (- is standard output).")
@click.option(
    "--markdown", "markdown_file", metavar="FILE", help="Write the answer as Markdown (- is standard output)."
)
@click.option(
    "--images",
    "image_format",
    type=click.Choice(["png", "svg"]),
    help="Charts beside the Markdown file, and links to them (needs kaleido).",
)
@click.option(
    "--where",
    "name",
    metavar="NAME",
    help="Instead: list the longest events called NAME with file, time and stream or thread.",
)
def compare(
    where: tuple[str, str],
    load: Callable[..., Comparison],
    top: int | None,
    sort: str,
    by: str | None,
    tables: tuple[str, ...],
    explained: str | None,
    device: str,
    html_file: str | None,
    json_file: str | None,
    markdown_file: str | None,
    image_format: str | None,
    name: str | None,
) -> int:
    """Compare two sets of traces: where the step time went and what changed.

    CONTROL and TEST are each a folder, a trace file (.json, .json.gz, .json.zst), a quoted glob, a .zip archive or a
    URL. Files of one rank are
    runs of the same program. Exit code: 0 compared, 2 error, 3 not comparable.

    \b
    Examples:
      tracediff compare eager/ compiled/
      tracediff compare eager/ compiled/ --html report.html
      tracediff compare a.json.gz b.json.gz --top 20 --device gpu
      tracediff compare runs/old runs/new --rank 0 --json diff.json --markdown diff.md
      tracediff compare job.json.gz job.json.gz --step ctrl=5 --step test=9
      tracediff compare old/ new/ --by family
      tracediff compare old/ new/ --table copies
      tracediff compare old/ new/ --explain layer_norm
      tracediff compare old/ new/ --where cudaStreamSynchronize
    """
    if name is not None:
        from tracediff_cli.where import list_events

        list_events(where, name, top if top is not None else 10)
        return 0
    if image_format and markdown_file in (None, "-"):
        raise click.UsageError("--images needs --markdown FILE, beside which the images are written")
    comparison = load(tables=tables)
    if explained is not None:
        from tracediff.report.explain import explain

        click.echo(explain(comparison, explained, top if top is not None else 10), nl=False)
        return 3 if comparison.was_refused else 0
    from tracediff.write import write_text

    if json_file:
        from tracediff.report.to_json import to_json

        write_text(json_file, to_json(comparison))
    if markdown_file:
        from tracediff.report.to_markdown import to_markdown

        images = _images(comparison, markdown_file, image_format) if image_format else None
        write_text(
            markdown_file,
            to_markdown(comparison, device=device, sort=sort, top=top if top is not None else 10, images=images),
        )
    if html_file:
        from tracediff.report.page.html import to_html

        write_text(html_file, to_html(comparison, command=shlex.join(["tracediff", *sys.argv[1:]])))
    if "-" not in (html_file, json_file, markdown_file):
        from rich.console import Console

        from tracediff.report.to_terminal import show

        show(comparison, Console(), device=device, sort=sort, top=top, by=by, tables=bool(tables))
    return 3 if comparison.was_refused else 0


def _images(comparison: Comparison, markdown_file: str, image_format: str) -> dict[str, tuple[str, str]]:
    """Write the images into a folder beside the file: chart → (address from the file, title)."""
    from tracediff.report.charts_files import write_images
    from tracediff.report.to_markdown import IMAGES

    folder = Path(markdown_file).with_suffix("").with_name(f"{Path(markdown_file).stem}_images")
    written = write_images(comparison, folder, IMAGES, image_format) if not comparison.was_refused else {}
    return {name: (f"{folder.name}/{path.name}", title) for name, (path, title) in written.items()}
