"""``tracediff compare … --where NAME``: the longest events of a name."""

from __future__ import annotations

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


def list_events(wheres: tuple[str, str], name: str, most: int) -> None:
    """Print the ``most`` longest events called ``name`` of each set.

    Raises:
        TracediffError: no event of that name in either set, or a set is a snapshot.
    """
    console = Console()
    files = [find_traces(where) for where in wheres]
    for file in (f for of in files for f in of):
        if is_snapshot(file):
            raise TracediffError(str(file), "is a snapshot, which holds no events", "give the traces themselves")
    found = [_longest(of, name, most) for of in files]
    if not any(found):
        raise TracediffError("--where", f"no event is called {name!r}", "look at the names with --top or in --json")
    for label, events in zip(labels_for(wheres), found, strict=True):
        console.print(
            Text(
                printable(
                    f"{label}: the longest events called {name}" if events else f"{label}: no event called {name}"
                ),
                style="bold",
            )
        )
        if events:
            console.print(_table(events), highlight=False)
        console.print()


def _longest(files: list[TraceFile], name: str, most: int) -> list[Found]:
    events = [event for file in files for event in _events(file, name, most, alone=len(files) == 1)]
    return sorted(events, key=lambda e: (-e.dur_ns, str(e.file), e.ts_ns))[:most]


def _events(file: TraceFile, name: str, most: int, alone: bool) -> list[Found]:
    """Those of one file; one among several that is no trace has none."""
    try:
        return longest_events(read_trace(file), name, most)
    except NotATrace:
        if alone:
            raise
        return []


def _table(events: list[Found]) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False)
    table.add_column("name", ratio=3, no_wrap=True, overflow="ellipsis")
    unit = time_unit(e.dur_ns / 1000 for e in events)
    table.add_column(f"dur {unit.name}", justify="right", no_wrap=True)
    table.add_column("at ms", justify="right", no_wrap=True)
    table.add_column("place", no_wrap=True)
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
