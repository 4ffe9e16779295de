"""``tracediff export CONTROL TEST``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tracediff_cli.sets import two_sets

if TYPE_CHECKING:
    from tracediff.diff.comparison import Comparison


@click.command()
@two_sets
@click.option("--csv", "csv_folder", metavar="DIR", help="Write the tables as CSV: states, groups and their members, call tree, findings, ops, steps, health.")
@click.option("--folded", "folded_file", metavar="FILE", help="Write the call stacks of both sides for flame-graph tools (- is standard output).")
def export(where: tuple[str, str], load: Callable[[], Comparison], csv_folder: str | None, folded_file: str | None) -> int:  # noqa: ARG001  # two_sets gives it
    """Write a comparison's tables to files.

    \b
    Examples:
      tracediff export eager/ compiled/ --csv tables/
      tracediff export eager/ compiled/ --folded stacks.txt
    """
    if csv_folder is None and folded_file is None:
        raise click.UsageError("say what to write: --csv DIR or --folded FILE")
    from tracediff.report.to_folded import to_folded
    from tracediff.report.write import write_text

    comparison = load()
    if folded_file is not None:
        write_text(folded_file, to_folded(comparison))
    if csv_folder is not None:
        _write_tables(comparison, csv_folder)
    return 3 if comparison.was_refused else 0


def _write_tables(comparison: Comparison, folder: str) -> None:
    from tracediff.errors import TracediffError
    from tracediff.report.to_csv import to_csv
    from tracediff.report.write import write_text

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise TracediffError(folder, f"cannot be made ({(error.strerror or str(error)).lower()})", "give a folder that can be written") from None
    tables = to_csv(comparison)
    for name, text in tables.items():
        write_text(os.path.join(folder, name), text)
    click.echo(f"wrote {len(tables)} tables to {folder}")
