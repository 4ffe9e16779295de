"""``python -m tracediff.collect``: the same as ``tracediff collect``, with torch and the standard library only."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

from tracediff.collect.driver import Collection
from tracediff.collect.options import ShowRequest, request_of
from tracediff.collect.run_progress import OnRun
from tracediff.process.child import child_command
from tracediff.process.ending import end

NEEDED = ("tracediff_cli", "msgspec", "numpy", "rich")
"""What the table of results needs besides torch and the standard library."""


def main(
    arguments: Sequence[str] | None = None,
    show: Callable[[ShowRequest], int] | None = None,
    progress: AbstractContextManager[OnRun | None] | None = None,
) -> int:
    """Collect, or show what was collected; returns the exit code: 0, 1 if a variant failed, 2 if the table cannot be
    shown.

    Args:
        arguments: of the command line, by default this process's.
        show: prints the table of a collection; None if only the collector is installed.
        progress: shows the progress of the runs; None for a line per phase on standard error.

    Raises:
        TracediffError: the request cannot be served.
    """
    request = request_of(sys.argv[1:] if arguments is None else arguments)
    if request is None:
        return 0
    if isinstance(request, ShowRequest):
        return show(request) if show else _show_elsewhere(request)
    try:
        with progress or nullcontext() as on_run:
            code = request.collect(on_run)
    except BaseException:
        if request.runs and not request.rank:
            show_command = shlex.join(["tracediff", "collect", "--show", str(request.out)])
            print(f"tracediff: what was collected so far: {show_command}", file=sys.stderr)
        raise
    if not request.rank:
        _show_in_a_process(ShowRequest(request.out))
        if request.runs:
            print(f"\nNext: {next_command(request)}")
    return code


def next_command(collection: Collection) -> str:
    """The command that compares the variants that were collected, quoted for the shell."""
    folders = [str(collection.out / v.folder) for v in collection.variants if v.text in collection.runs]
    command = "analyze" if len(folders) == 1 else "compare" if len(folders) == 2 else "matrix"
    return shlex.join(["tracediff", command, *folders])


def _show_in_a_process(request: ShowRequest) -> None:
    """Show the table in a process of its own: reading traces forks, and torch's threads do not survive that."""
    sys.stdout.flush()
    if all(find_spec(name) for name in NEEDED):
        subprocess.run(child_command("tracediff", "collect", f"--show={request.out}"), check=False)
    else:
        _show_elsewhere(request)


def _show_elsewhere(request: ShowRequest) -> int:
    print(
        f"table not shown: tracediff is not installed here; run `tracediff collect --show {request.out}` where it is",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    end(main)
