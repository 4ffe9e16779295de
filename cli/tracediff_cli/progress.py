"""Progress on standard error while a command reads, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracediff.collect.run_progress import RunProgress
    from tracediff.progress import Progress

QUIET_S = 1.0
"""What takes less time than this shows no progress, in seconds."""


@contextmanager
def reading_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on a terminal, nothing on a pipe; yields the callback of the progress, None on a pipe."""
    with _bar() as draw:

        def show(progress: Progress) -> None:
            if draw and progress.elapsed_s >= QUIET_S:
                draw(progress.stage, progress.fraction, str(progress))

        yield show if draw else None


@contextmanager
def collecting_progress() -> Iterator[Callable[[RunProgress], None] | None]:
    """Show the current run on a terminal; yields the callback of the progress, None on a pipe."""
    with _bar() as draw:
        yield draw and (lambda progress: draw(str(progress), progress.fraction, ""))


@contextmanager
def _bar() -> Iterator[Callable[[str, float, str], None] | None]:
    """What draws the stage, the fraction and the figures of a bar, which leaves nothing behind; None if there is no
    terminal.
    """
    if not sys.stderr.isatty():  # rich takes a pipe for a terminal if FORCE_COLOR is set
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    stage, figures = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[figures]}")
    bar = Progress(stage, BarColumn(None), figures, console=console, transient=True, auto_refresh=False, expand=True)
    bar.add_task("", total=1.0, figures="")

    def draw(stage: str, fraction: float, figures: str) -> None:
        bar.start()
        bar.update(bar.task_ids[0], completed=fraction, description=stage, figures=figures)
        bar.refresh()

    try:
        yield draw
    finally:
        if bar.live.is_started:
            bar.stop()
