"""``tracediff compare … --where NAME``: the longest events with that name."""

from __future__ import annotations

from itertools import chain

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracediff.aggregate.snapshot import is_snapshot
from tracediff.errors import NotATrace, TracediffError, printable
from tracediff.formatting import time_unit
from tracediff.ingest.discover import find_traces, labels_for
from tracediff.ingest.find import Found, longest_events
from tracediff.ingest.read import read_trace
from tracediff.ingest.source import TraceFile


def list_events(paths: tuple[str, str], name: str, limit: int) -> None:
    """Print the ``limit`` longest events called ``name`` of each set.

    Raises:
        TracediffError: neither set has such an event, or a set is a snapshot.
    """
    console = Console()
    files = [find_traces(path) for path in paths]
    for file in chain.from_iterable(files):
        if is_snapshot(file):
            raise TracediffError(str(file), "is a snapshot, which contains no events", "give the traces instead")
    events_by_side = [_longest(side_files, name, limit) for side_files in files]
    if not any(events_by_side):
        raise TracediffError("--where", f"no event is called {name!r}", "find the name with --top 100 or in --json")
    for label, events in zip(labels_for(paths), events_by_side, strict=True):
        console.print(
            Text(
                printable(f"{label}: longest events called {name}" if events else f"{label}: no event called {name}"),
                style="bold",
            )
        )
        if events:
            console.print(_table(events), highlight=False)
        console.print()


def _longest(files: list[TraceFile], name: str, limit: int) -> list[Found]:
    events = [event for file in files for event in _events(file, name, limit, is_only=len(files) == 1)]
    return sorted(events, key=lambda e: (-e.dur_ns, str(e.file), e.ts_ns))[:limit]


def _events(file: TraceFile, name: str, limit: int, is_only: bool) -> list[Found]:
    """The longest events of one file; none if it is not a trace and there are other files."""
    try:
        return longest_events(read_trace(file), name, limit)
    except NotATrace:
        if is_only:
            raise
        return []


def _table(events: list[Found]) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False)
    table.add_column("name", ratio=3, no_wrap=True, overflow="ellipsis")
    unit = time_unit(e.dur_ns / 1000 for e in events)
    table.add_column(f"duration {unit.name}", justify="right", no_wrap=True)
    table.add_column("start ms", justify="right", no_wrap=True)
    table.add_column("stream or thread", no_wrap=True)
    table.add_column("file", ratio=2, no_wrap=True, overflow="ellipsis")
    for e in events:
        table.add_row(
            Text(printable(e.name)),
            unit.plain(e.dur_ns / 1000),
            f"{e.at_ns / 1e6:,.3f}",
            Text(printable(e.place)),
            Text(printable(e.file.name)),
        )
    return table
