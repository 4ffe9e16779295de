"""``tracediff collect --show OUT``: the table of a collection."""

from __future__ import annotations

from pathlib import Path

from tracediff_cli.options.outputs import Output, check_outputs


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
    from tracediff.collected.variants import collection_table
    from tracediff.write import write_text

    table = collection_table(out)
    if json_file:
        from tracediff.report.collection_json import to_json

        write_text(json_file, to_json(table))
    if markdown_file:
        from tracediff.report.collection_markdown import to_markdown

        write_text(markdown_file, to_markdown(table))
    if "-" not in (json_file, markdown_file):
        from tracediff.report.collection_terminal import show
        from tracediff.report.table_terminal import screen_console

        show(table, screen_console())
    return 0
