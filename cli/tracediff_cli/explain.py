"""``tracediff explain CONTROL TEST NAME``: how that work was matched, or the longest events of that name."""

from collections.abc import Mapping
from functools import partial
from itertools import chain, count

import click
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from tracediff.errors import LIST_NAMES, NotATrace, TracediffError, printable, quoted
from tracediff.formatting import Unit, time_unit
from tracediff.ingest.discover import check_events, find_traces, labels_for
from tracediff.ingest.files.source import TraceFile, file_names, stored_size
from tracediff.ingest.model.trace import EventRecord, longest_events
from tracediff.ingest.read import read_traces
from tracediff.progress import Meter, OnProgress
from tracediff.report.table_terminal import grid, print_screen
from tracediff_cli.options.groups import WholeNumber, grouped_command, option, two_sets
from tracediff_cli.options.judging import PairOptions, pair_options
from tracediff_cli.progress import reading_progress


@grouped_command
@two_sets
@click.argument("name", metavar="NAME")
@option(
    "--events",
    is_flag=True,
    help="List the longest events of that name instead, in all steps and ranks, with file, time and stream or thread.",
)
@option("--top", type=WholeNumber(0), default=10, show_default=True, help="Show the N largest.")
@pair_options(table_help=None)
def explain(
    pair: PairOptions,
    name: str,
    events: bool,
    top: int,
) -> int:
    """Show how and why the work of a kernel or operator was matched, or its events.

    NAME is the name of a kernel or an operator, a part of it, a family (gemm kernels), or a named line of Why.

    \b
    Examples:
      tracediff explain old/ new/ layer_norm
      tracediff explain old/ new/ "the same operator calls"
      tracediff explain old/ new/ cudaStreamSynchronize --events
    """
    if events:
        if any(pair.loading.of_sets[selection] for selection in ("rank", "step", "skip_first")):
            raise click.UsageError("--events lists those of whole files: leave out --rank, --step and --skip-first")
        _list_events((pair.control, pair.test), name, top)
        return 0
    from tracediff.report.explain import explain as explained

    comparison = pair.compared()
    click.echo(explained(comparison, name, top), nl=False)
    return 3 if comparison.was_refused else 0


def _list_events(paths: tuple[str, str], name: str, limit: int) -> None:
    """Print the ``limit`` longest events called ``name`` of each set.

    Raises:
        TracediffError: neither set has such an event, or a set is a snapshot.
    """
    console = Console()
    files = [find_traces(path) for path in paths]
    check_events(chain(*files))
    with reading_progress() as on_progress:
        events_by_side = _longest(files, name, max(limit, 1), on_progress)
    if not any(events_by_side):
        raise TracediffError("NAME", f"no event is called {quoted(name)}", LIST_NAMES)
    unit = time_unit(e.dur_ns / 1000 for e in chain(*events_by_side))
    for label, events, of_side in zip(labels_for(paths), events_by_side, files, strict=True):
        title = f"{label}: longest events called {name} of all steps" if events else f"{label}: no event called {name}"
        names = dict(zip(of_side, file_names(of_side), strict=True))
        table = [_table(events[:limit], unit, names)] if events else []
        print_screen(console, Group(Text(printable(title), style="bold"), *table, ""))


def _longest(
    files: list[list[TraceFile]], name: str, limit: int, on_progress: OnProgress | None
) -> list[list[EventRecord]]:
    """The longest events of each set's files; files that are not traces are left out of sets of several files."""
    meter = Meter(list(map(stored_size, chain(*files))), [0] * sum(map(len, files)), on_progress)
    positions = count()
    sets = []
    for set_files in files:
        events: list[EventRecord] = []
        for file in set_files:
            position = next(positions)
            try:
                for trace in read_traces(file, on_read=partial(meter.read, position)):
                    events += longest_events(trace, name, limit)
            except NotATrace:
                if len(set_files) == 1:
                    raise
            meter.finish(position)
        sets.append(sorted(events, key=lambda e: (-e.dur_ns, str(e.file), e.at_ns))[:limit])
    return sets


def _table(events: list[EventRecord], unit: Unit, names: Mapping[TraceFile, str]) -> Table:
    heads = ("name", f"duration {unit.name}", "start ms", "stream or thread", "file")
    table = grid(heads, "lrrll", expand=True)
    table.padding = 0, 1
    table.columns[0].ratio, table.columns[-1].ratio = 3, 2
    for e in events:
        cells = (e.name, unit.plain(e.dur_ns / 1000), f"{e.at_ns / 1e6:,.3f}", e.place, names.get(e.file, e.file.name))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table
