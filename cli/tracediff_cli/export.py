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
@click.option("--csv", "csv_folder", metavar="DIR", required=True, help="Write step_time, gpu_groups, gpu_members, ops, steps and health as CSV.")
def export(where: tuple[str, str], load: Callable[[], Comparison], csv_folder: str) -> int:  # noqa: ARG001  # two_sets gives it
    """Write a comparison's tables to files.

    \b
    Example:
      tracediff export eager/ compiled/ --csv tables/
    """
    from tracediff.errors import TracediffError
    from tracediff.report.to_csv import to_csv
    from tracediff.report.write import write_text

    comparison = load()
    try:
        os.makedirs(csv_folder, exist_ok=True)
    except OSError as error:
        raise TracediffError(csv_folder, f"cannot be made ({(error.strerror or str(error)).lower()})", "give a folder that can be written") from None
    for name, text in to_csv(comparison).items():
        write_text(os.path.join(csv_folder, name), text)
    click.echo(f"wrote {len(to_csv(comparison))} tables to {csv_folder}")
    return 3 if comparison.was_refused else 0
