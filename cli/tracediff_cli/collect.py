"""``tracediff collect``: passes its options on to the collector, which needs only torch; the table of a collection."""

from __future__ import annotations

from pathlib import Path

import click

from tracediff_cli.options.groups import Output, check_outputs


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
    context.exit(
        main(
            collector_arguments,
            lambda request: show_collection(request.out, request.json_file, request.markdown_file),
            collecting_progress(),
        )
    )


def show_collection(out: Path, json_file: str | None = None, markdown_file: str | None = None) -> int:
    """Print the table of the collection in ``out``, or write it to the given files (``-`` is standard output).

    Returns:
        The exit code, 0.

    Raises:
        TracediffError: ``out`` is not a collection, or a file cannot be written, or would replace a part of it.
    """
    files = {"--json": json_file, "--markdown": markdown_file}
    outputs = [Output(option, path) for option, path in files.items() if path is not None]
    check_outputs(outputs, map(str, (*out.glob("collection.json"), *out.glob("*/"))))
    from tracediff.collected import collection_table
    from tracediff.write import write_text

    table = collection_table(out)
    if json_file:
        from tracediff.report.collection import to_json

        write_text(json_file, to_json(table))
    if markdown_file:
        from tracediff.report.collection import to_markdown

        write_text(markdown_file, to_markdown(table))
    if "-" not in (json_file, markdown_file):
        from tracediff.report.collection import show
        from tracediff.report.table_terminal import screen_console

        show(table, screen_console())
    return 0


@click.command(hidden=True)
@click.argument("out", metavar="OUT")
@click.option("--json", "json_file", metavar="FILE", help="Write the table as JSON (- is standard output).")
@click.option("--markdown", "markdown_file", metavar="FILE", help="Write the table as Markdown (- is standard output).")
def table(out: str, json_file: str | None, markdown_file: str | None) -> int:
    """Show the table of a collection: now `tracediff collect --show OUT`."""
    click.echo("tracediff: `tracediff table` is now called `tracediff collect --show`", err=True)
    return show_collection(Path(out), json_file, markdown_file)
