"""Progress on standard error while a command reads, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracediff.progress import Progress

QUIET_S = 1.0
"""What takes less time than this shows no progress, in seconds."""


@contextmanager
def reading_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on a terminal, nothing on a pipe; yields the callback of the progress, None on a pipe."""
    from rich.console import Console

    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:  # rich takes a pipe for a terminal if FORCE_COLOR is set
        yield None
        return
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(None),
        rich_progress.TextColumn("{task.fields[figures]}"),
    )
    bar = rich_progress.Progress(*columns, console=console, transient=True, auto_refresh=False, expand=True)
    task = bar.add_task("", total=1.0, figures="")

    def show(progress: Progress) -> None:
        if progress.elapsed_s >= QUIET_S:
            bar.start()
            bar.update(task, completed=progress.fraction, description=progress.stage, figures=str(progress))
            bar.refresh()

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()
