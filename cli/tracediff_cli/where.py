"""``tracediff compare … --where NAME``: the longest events of a name."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracediff.errors import TracediffError, printable
from tracediff.ingest.discover import find_traces, labels_for
from tracediff.ingest.find import Found, longest_events
from tracediff.ingest.read import read_trace


def list_events(wheres: tuple[str, str], name: str, most: int) -> None:
    """Print the ``most`` longest events called ``name`` of each set.

    Raises:
        TracediffError: no event of that name in either set.
    """
    console = Console()
    found = [_longest(where, name, most) for where in wheres]
    if not any(found):
        raise TracediffError("--where", f"no event is called {name!r}", "look at the names with --top or in --json")
    for label, events in zip(labels_for(wheres), found, strict=True):
        console.print(Text(printable(f"{label}: the longest events called {name}" if events else f"{label}: no event called {name}"), style="bold"))
        if events:
            console.print(_table(events), highlight=False)
        console.print()


def _longest(where: str, name: str, most: int) -> list[Found]:
    events = [event for file in find_traces(where) for event in longest_events(read_trace(file), name, most)]
    return sorted(events, key=lambda e: (-e.dur_ns, str(e.file), e.ts_ns))[:most]


def _table(events: list[Found]) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False)
    table.add_column("name", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("dur µs", justify="right", no_wrap=True)
    table.add_column("at ms", justify="right", no_wrap=True)
    table.add_column("place", no_wrap=True)
    table.add_column("file", ratio=2, no_wrap=True, overflow="ellipsis")
    for e in events:
        table.add_row(Text(printable(e.name)), f"{e.dur_ns / 1e3:,.3f}", f"{e.at_ns / 1e6:,.3f}", Text(printable(e.place)), Text(printable(e.file.name)))
    return table
