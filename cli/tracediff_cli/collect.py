"""``tracediff collect``: passes its options on to the collector, which needs only torch; the table of a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracediff_cli.options.groups import Documents, check_outputs

if TYPE_CHECKING:
    from tracediff.collect.options import ShowRequest


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def collect(context: click.Context, arguments: tuple[str, ...]) -> int:
    """Run steps under torch.profiler and write trace sets."""
    import sys

    from tracediff.collect.__main__ import main
    from tracediff_cli.progress import collecting_progress

    collector_arguments = (
        sys.argv[sys.argv.index("collect") + 1 :] if "--" in sys.argv else list(arguments)
    )  # click swallows the first --
    context.exit(main(collector_arguments, show_collection, collecting_progress()))


def show_collection(request: ShowRequest) -> int:
    """Print the table of a collection, or write it to files (``-`` is standard output).

    Returns:
        The exit code, 0.

    Raises:
        TracediffError: it is not a collection, or a file cannot be written, or would replace a part of it.
    """
    documents = Documents({"json": request.json_file, "markdown": request.markdown_file})
    outputs = [(f"--{kind}", path) for kind, path in documents.files.items() if path is not None]
    check_outputs(outputs, map(str, (*request.out.glob("collection.json"), *request.out.glob("*/"))))
    from tracediff.collected import collection_table
    from tracediff.report import collection as report

    table = collection_table(request.out)
    if console := documents.write(json=lambda: report.to_json(table), markdown=lambda: report.to_markdown(table)):
        report.show(table, console)
    return 0
