"""``tracediff history add``, ``show`` and ``bisect``."""

from functools import partial
from pathlib import Path

import click

from tracediff.errors import TracediffError, quoted
from tracediff_cli.options.groups import (
    INSTEAD,
    Documents,
    GroupedCommand,
    Input,
    OutputFolder,
    WholeNumber,
    command_line,
    documents,
    one_set,
    option,
)
from tracediff_cli.options.loading import LoadArguments, load_options

entry_option = partial(option, group="What the set is of")
series_option = partial(option, group="Series")
LIMITS = "Limits"


@click.group()
def history() -> None:
    """Keep the step time of every commit, find changes beyond the noise, and the commits that caused them.

    A history is a folder, or a URL that fsspec can write, with a snapshot of some KB for every set.

    \b
    Examples:
      tracediff history add out/eager -o perf/history
      tracediff history show perf/history
      tracediff history bisect perf/history --good v1.0 --bad main -- \\
          tracediff collect bench.py:make_step --variant eager -o {out}
    """


history.command_class = GroupedCommand


@history.command(short_help="Add a set to a history.")
@one_set
@option(
    "-o",
    "--out",
    "--output",
    "place",
    type=OutputFolder(),
    required=True,
    metavar="HIST",
    help="Add the set to this folder or URL.",
)
@entry_option(
    "--commit",
    metavar="NAME[,TIME]",
    help="Hash, branch or tag of the code [default: from the manifest, else HEAD of the repository here], and its "
    "time, such as v1.2,2026-11-22T10:00Z [default: from that repository].",
)
@entry_option("--machine", metavar="NAME", help="What the set ran on [default: the GPU, or the kind of CPU].")
@entry_option(
    "--configuration",
    metavar="NAME",
    help="What ran [default: workload or file, size, variant and device, from the manifest].",
)
@load_options(table_help='Include this table in the snapshot, such as launches (repeatable; "all" for every table).')
def add(
    where: str,
    loading: LoadArguments,
    place: str,
    commit: str | None,
    machine: str | None,
    configuration: str | None,
) -> int:
    """Add a set to a history, under its commit, machine and configuration.

    Several sets of a commit count together. Adding the same set again changes nothing. Many writers may add at once.

    \b
    Example:
      tracediff collect bench.py:make_step --variant eager --repeats 5 -o out/
      tracediff history add out/eager -o perf/history
    """
    from tracediff.errors import printable
    from tracediff.formatting import size as in_bytes
    from tracediff.git import Repository
    from tracediff.history.store import add as add_entry, recorded_of

    name, committed = _commit(commit)
    (traces,) = loading.load([where])
    recorded = recorded_of(traces, Repository(Path.cwd()), name, committed, machine, configuration)
    path, size = add_entry(traces, recorded, place)
    what = f"{recorded.commit[:12]}, {recorded.configuration}, {recorded.machine}"
    click.echo(printable(f"added {path}: {what} in {in_bytes(size)}"))
    return 0


@history.command(short_help="Show the step time over commits, and its changes.")
@click.argument("place", metavar="HIST", type=Input())
@series_option("--configuration", metavar="NAME", help="Show only this configuration.")
@series_option("--machine", metavar="NAME", help="Show only this machine.")
@option(
    "--by",
    group=INSTEAD,
    type=click.Choice(["step", "family", "memory"]),
    default="step",
    help="Show the step time, the families of work or the peak memory of each commit [default: step].",
)
@option("--last", type=WholeNumber(0), default=30, help="List the last N commits, 0 for all [default: 30].")
@documents(
    json="Write the history as JSON (- is standard output).",
    markdown="Write the tables as Markdown (- is standard output).",
    html="Write a page with charts that works offline.",
)
def show(
    place: str,
    configuration: str | None,
    machine: str | None,
    by: str,
    last: int,
    documents: Documents,
) -> int:
    """Show the step time over commits, its change points, and what explains each of them.

    Commits are in the order of the repository in the working directory, else of their times.

    \b
    Examples:
      tracediff history show perf/history
      tracediff history show perf/history --by family --html history.html
    """
    from tracediff.git import Repository
    from tracediff.history.series import all_series, explained, selected
    from tracediff.history.store import read
    from tracediff.report import history as report

    repository = Repository(Path.cwd())
    entries, unread = read(place)
    every = selected(all_series(entries, repository), machine, configuration)
    series, most = [explained(one, repository) for one in every], last or None
    if console := documents.write(
        json=lambda: report.to_json(series, unread),
        markdown=lambda: report.to_markdown(series, unread, view=by, last=most),
        html=lambda: report.to_html(series, unread, command_line()),
    ):
        report.show(place, series, unread, console, view=by, last=most)
    return 0


@history.command(short_help="Find the commit that made the step slower.")
@click.argument("place", metavar="HIST")
@click.argument("command", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@series_option("--good", required=True, metavar="COMMIT", help="A commit before the change, with an entry.")
@series_option("--bad", required=True, metavar="COMMIT", help="A commit after the change.")
@series_option("--configuration", metavar="NAME", help="Of the entry of the good commit.")
@series_option("--machine", metavar="NAME", help="Of the entry of the good commit.")
@option(
    "--max-regression",
    group=LIMITS,
    metavar="PERCENT",
    help="A commit is bad if its step is slower by more than this [default: half of the change between the commits].",
)
@option("--allow", group=LIMITS, multiple=True, metavar="CAUTION", help="Judge in spite of this caution (repeatable).")
def bisect(
    place: str,
    command: tuple[str, ...],
    good: str,
    bad: str,
    configuration: str | None,
    machine: str | None,
    max_regression: str | None,
    allow: tuple[str, ...],
) -> int:
    """Find the commit that made the step slower, by a binary search.

    CMD records a set into the folder {out}, in a temporary worktree of each commit; yours is not touched. The good and
    the bad commit are recorded again beside the others. Counts of operators and kernels decide, else step times; a
    commit that cannot be recorded is skipped. Each line says what a decision rests on.

    \b
    Example:
      tracediff history bisect perf/history --good v1.0 --bad main -- \\
          tracediff collect bench.py:make_step --variant eager --repeats 2 -o {out}
    """
    from tracediff.diff.gate.limits import allowed, parse_relative
    from tracediff.git import Repository
    from tracediff.history.bisect import bisect as run_bisect, only_series
    from tracediff.history.evidence import Criterion
    from tracediff.history.series import all_series, selected
    from tracediff.history.store import read
    from tracediff.report.history import show_bisected
    from tracediff.report.table_terminal import screen_console

    repository = Repository(Path.cwd())
    limit = None if max_regression is None else parse_relative(max_regression, "--max-regression")
    series = only_series(selected(all_series(read(place)[0], repository), machine, configuration))
    bisected = run_bisect(series, good, bad, command, repository, Criterion(limit, allowed(allow, "--allow")))
    show_bisected(bisected, repository.subjects(bisected.suspects), screen_console())
    return 3 if bisected.inconclusive or len(bisected.suspects) > 1 else 0


def _commit(text: str | None) -> tuple[str | None, int | None]:
    """The name and the time of ``NAME[,TIME]``, in s since 1970; None for what is not given."""
    if text is None or "," not in text:
        return text, None
    name, _, time = text.rpartition(",")
    return name or None, _seconds(time)


def _seconds(text: str) -> int:
    """A time as ISO 8601 writes it, in s since 1970; without a zone it is UTC."""
    from datetime import UTC, datetime

    try:
        time = datetime.fromisoformat(text)
        return max(int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()), 0)
    except (ValueError, OverflowError):
        raise TracediffError("--commit", f"{quoted(text)} is not a time", "write NAME,2026-11-22T10:00Z") from None
