"""``tracediff collect --show OUT``: the table of a collection."""

from __future__ import annotations

from pathlib import Path


def show_collection(out: Path, json_file: str | None = None, markdown_file: str | None = None) -> int:
    """Print the table of the collection in ``out``, or write it where a file is given (``-`` is standard output).

    Raises:
        TracediffError: no collection there, or a file cannot be written.
    """
    from tracediff.report.collection import collection_table
    from tracediff.write import write_text

    found = collection_table(out)
    if json_file:
        write_text(json_file, found.to_json())
    if markdown_file:
        from tracediff.report.collection_markdown import to_markdown

        write_text(markdown_file, to_markdown(found))
    if "-" not in (json_file, markdown_file):
        from rich.console import Console

        from tracediff.report.collection_terminal import show

        show(found, Console())
    return 0
